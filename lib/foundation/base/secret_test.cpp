// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <doctest/doctest.h>

namespace zs {
namespace {

TEST_CASE("secret: told by the words of a name; no tokenizer's token is one") {
  for (const char* const name : {"wandb.api_key",
                                 "WANDB_API_KEY",
                                 "hub.hfToken",
                                 "HF_TOKEN",
                                 "token",
                                 "db.password",
                                 "dbPassword",
                                 "SLURM_JWT",
                                 "AWS_SECRET_ACCESS_KEY",
                                 "aws.accessKey",
                                 "http.auth",
                                 "basic_auth",
                                 "credentials_file",
                                 "x.key",
                                 "apikey",
                                 "mlflow.tracking_password",
                                 "client_secret_value",
                                 "secrets.wandb",
                                 "user.cookie",
                                 "user.passcode"}) {
    CHECK_MESSAGE(names_secret(name), name);
  }
  for (const char* const name :
       {"", ".", "tokens", "max_tokens", "tokenizer", "pad_token", "data.text_key", "image_key", "author",
        "zero.passes", "training.seed", "keyed", "monkey", "compass", "bypass", "authority"})
    CHECK_MESSAGE(!names_secret(name), name);
}

TEST_CASE("secret: the values of a command line are withheld, in each of its forms, and nothing else") {
  using Words = std::vector<std::string>;
  CHECK(without_secrets({"zs-train", "--set", "wandb.api_key=x=y", "--set=hub.token=z", "--seed", "7"}) ==
        Words{"zs-train", "--set", "wandb.api_key=(withheld)", "--set=hub.token=(withheld)", "--seed", "7"});
  CHECK(without_secrets({"train.py", "--hf_token", "x", "HF_TOKEN=x", "--password", "--verbose", "a=b", "--"}) ==
        Words{"train.py", "--hf_token", "(withheld)", "HF_TOKEN=(withheld)", "--password", "--verbose", "a=b", "--"});
}

TEST_CASE("secret: known by its form too, in whatever it stands, and nothing that only looks alike") {
  const std::string tail = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
  for (const std::string front :
       {"hf_", "ghp_", "github_pat_", "glpat-", "sk-", "AKIA", "AIza", "xoxb-", "eyJ", "npm_"}) {
    CHECK_MESSAGE(without_secret_values("x=" + front + tail + " y") == "x=(withheld) y", front);
    CHECK_MESSAGE(!holds_secret(front + "short"), front);
  }
  CHECK(holds_secret("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"));  // Hugging Face's have 34 letters, and need no digit
  CHECK(!holds_secret("hf_abcdefghijklmnopqrstuvwxyzABCDEFGHI"));
  CHECK(without_secret_values("https://u:PW@h/x?a") == "https://u:(withheld)@h/x?a");
  CHECK(without_secret_values("postgres://me:p:w@h") == "postgres://me:(withheld)@h");
  CHECK(without_secret_values("Authorization: Bearer abc.def-12345 z") == "Authorization: Bearer (withheld) z");
  for (const char* const text :
       {"https://h:80/x", "file:///a:b@c", "s3://bucket/a@b", "hf_model_name_that_is_long_enough",
        "risk-averse-strategies-of-old", "sk-learn-baseline-of-run-1", "saved/AKIAxyz", "12:30 a@b", "the bearer", ""})
    CHECK_MESSAGE(!holds_secret(text), text);
  CHECK(without_secrets({"zs-train", "--run_name", "hf_" + tail}) ==
        std::vector<std::string>{"zs-train", "--run_name", "(withheld)"});
}

}  // namespace
}  // namespace zs
