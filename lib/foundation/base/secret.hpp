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

/// The value of a field as all writers write it into all files: without the secrets that its name or its form shows.
/// A second application changes nothing.
std::string withheld(std::string_view name, std::string_view value);

/// `text` with each secret in it withheld: tokens of Hugging Face, GitHub, GitLab, OpenAI, AWS, Google, Slack, NVIDIA,
/// npm, W&B and others, a JSON Web Token, the word after "Bearer", a private key, the password of "user:password@" in a
/// URL, a URL's signature, MySQL's -pPASSWORD, and the value of a name of a secret: NAME=VALUE, "NAME": VALUE, --NAME
/// VALUE. A variable ($NAME) is none.
std::string without_secret_values(std::string_view text);
/// Whether `text` contains a secret of such a form.
bool holds_secret(std::string_view text);
/// Only tokens and private keys: for program text, where a name has no secret behind it.
std::string without_tokens(std::string_view text);

/// The words of a command line with secrets withheld: by name ("--set", "wandb.api_key=..." and "--hf_token", "...")
/// and by form.
std::vector<std::string> without_secrets(std::vector<std::string> words);

}  // namespace zs
