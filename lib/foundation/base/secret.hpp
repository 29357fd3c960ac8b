// SPDX-License-Identifier: Apache-2.0
// Passwords and keys: kept out of configurations, logs, records and reports, which others read.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// Replaces the value of a secret.
inline constexpr std::string_view kWithheld = "(withheld)";

/// Whether `name` names a secret, by its words, above all the last: "wandb.api_key", "HF_TOKEN", "dbPassword" do;
/// "text_key", "pad_token", "max_tokens" do not.
bool names_secret(std::string_view name);

/// `text` with everything that has the form of a secret withheld: tokens of Hugging Face, GitHub, GitLab, OpenAI, AWS,
/// Google, Slack, npm and W&B, a JSON Web Token, the word after "Bearer", a private key, and the password of
/// "user:password@" in a URL.
std::string without_secret_values(std::string_view text);
/// Whether `text` contains a secret of such a form.
bool holds_secret(std::string_view text);

/// The words of a command line with secrets withheld: by name ("--set", "wandb.api_key=..." and "--hf_token", "...")
/// and by form.
std::vector<std::string> without_secrets(std::vector<std::string> words);

}  // namespace zs
