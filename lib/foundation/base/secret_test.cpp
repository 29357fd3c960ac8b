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
  for (const std::string front : {"nvapi-", "sk-ant-api03-", "xoxp-", "gsk_"}) CHECK(holds_secret(front + tail));
  CHECK(without_secret_values("mysql -p" + tail) == "mysql -p(withheld)");
  CHECK(without_secret_values("redis://:PW@h:6379/0") == "redis://:(withheld)@h:6379/0");
  CHECK(without_secret_values("x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE") == "x\n(withheld)");
  CHECK(without_tokens("token = next(x)  # npm_" + tail) == "token = next(x)  # (withheld)");
  CHECK(without_secrets({"zs-train", "--run_name", "hf_" + tail}) ==
        std::vector<std::string>{"zs-train", "--run_name", "(withheld)"});
}

TEST_CASE("secret: found behind its name in any text: JSON, YAML, a shell's line, a header, a connection, a URL") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"--({"api_key": "PW", "lr": 1})--", R"--({"api_key": "(withheld)", "lr": 1})--"},
      {R"--({\"password\": \"P\"})--", R"--({\"password\": \"(withheld)\"})--"},
      {"[{password: PW, user: me}, {token: 'P W'}]", "[{password: (withheld), user: me}, {token: '(withheld)'}]"},
      {"{secrets: [a, {b: c}], d: e}", "{secrets: (withheld), d: e}"},
      {"python t.py --hf_token PW --lr 1", "python t.py --hf_token (withheld) --lr 1"},
      {"HF_TOKEN=PW python t.py", "HF_TOKEN=(withheld) python t.py"},
      {"password = PW", "password = (withheld)"},
      {"Protocol=https;AccountKey=PW==;Suffix=x", "Protocol=https;AccountKey=(withheld);Suffix=x"},
      {"https://a.net/c?sv=2020&sig=PW&x=1", "https://a.net/c?sv=2020&sig=(withheld)&x=1"},
      {"https://a.net/c?access_token=PW", "https://a.net/c?access_token=(withheld)"},
      {"https://s3/x?X-Amz-Signature=PW", "https://s3/x?X-Amz-Signature=(withheld)"},
      {"Authorization: Basic cHc=", "Authorization: Basic (withheld)"},
      {"X-Api-Key: PW", "X-Api-Key: (withheld)"},
      {"Cookie: session=PW; id=PW", "Cookie: (withheld)"},
      {"true --header 'Authorization: Bearer 123456789'", "true --header 'Authorization: Bearer (withheld)'"},
      {"curl -H 'Cookie: session=PW' x", "curl -H 'Cookie: (withheld)' x"}};
  for (const auto& [text, clear] : cases) {
    CHECK(without_secret_values(text) == clear);
    CHECK(without_secret_values(clear) == clear);
  }
  for (const char* const text : {"tokens=5",
                                 "max_tokens: 100",
                                 "unexpected token: 'x'",
                                 "KeyError: 'token'",
                                 "forward pass: 3 ms",
                                 "key=loss",
                                 "{key: loss, op: min}",
                                 "use_auth_token=True",
                                 "{token: null}",
                                 "--hf_token $HF_TOKEN",
                                 "HF_TOKEN=$(cat t) x",
                                 "author: me",
                                 "pad_token=<pad>",
                                 "monkey=5",
                                 "https://h:80/?q=1&signal=2",
                                 "a::token::b",
                                 "ssh://git@h/x",
                                 "pre-auth server",
                                 "-path/To/Model1B",
                                 "-p 8080",
                                 "-p8080",
                                 "sort_key: a",
                                 "SECRET=",
                                 "12:30",
                                 "lr=1e-3"})
    CHECK_MESSAGE(!holds_secret(text), text);
}

TEST_CASE("secret: a field is withheld by its name, and without its name by its form") {
  CHECK(withheld("db.password", "x") == "(withheld)");
  for (const char* const value : {"", "${oc.env:PW}", "$PW", "true", "null", "(withheld)"})
    CHECK(withheld("db.password", value) == value);
  CHECK(withheld("db.url", "postgres://u:x@h") == "postgres://u:(withheld)@h");
  CHECK(withheld("training.seed", "7") == "7");
}

}  // namespace
}  // namespace zs
