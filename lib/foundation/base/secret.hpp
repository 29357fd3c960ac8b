// SPDX-License-Identifier: Apache-2.0
// Passwords and keys, which must not get into what others read: configurations, logs, records, reports.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// What stands in place of a secret's value.
inline constexpr std::string_view kWithheld = "(withheld)";

/// Whether what is called `name` is a secret, going by its words, above all the last: "wandb.api_key", "HF_TOKEN",
/// "dbPassword" are; "text_key", "pad_token", "max_tokens" are not.
bool names_secret(std::string_view name);

/// `text` with what looks like a secret by its form withheld: the tokens of Hugging Face, GitHub, GitLab, OpenAI, AWS,
/// Google, Slack, npm and W&B, a JSON Web Token, what stands behind "Bearer", a private key, and the password of
/// "user:password@" in a URL.
std::string without_secret_values(std::string_view text);
/// Whether there is one.
bool holds_secret(std::string_view text);

/// The words of a command line with the values of secrets withheld: "--set", "wandb.api_key=..." and "--hf_token",
/// "..."; and of those that are known by their form.
std::vector<std::string> without_secrets(std::vector<std::string> words);

}  // namespace zs
