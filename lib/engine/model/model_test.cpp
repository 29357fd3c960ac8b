// SPDX-License-Identifier: Apache-2.0
#include "model/model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "model/forward_test.hpp"
#include "unit/random.hpp"

namespace zs::model {
namespace {

struct Measured {
  double mean, std;
};

/// Of the initial values of a parameter of a model.
Measured measured(const model::Model& model, const std::string& name) {
  for (const auto& owner : model.units) {
    const at::Tensor flat = beginning(*owner, 1, 0, owner->numel());
    for (const unit::Parameter& parameter : owner->parameters()) {
      if (parameter.name != name) continue;
      const at::Tensor values = flat.narrow(0, parameter.offset, parameter.numel()).to(at::kDouble);
      return {values.mean().item<double>(), values.std().item<double>()};
    }
  }
  FAIL("no parameter " << name);
  return {};
}

constexpr const char* kBlock = "transformer.h.1.";

}  // namespace

TEST_CASE("model: a part of a unit begins with the numbers that the whole has there") {
  for (const char* const name : {"tiny", "tiny-mixtral"}) {
    const Model model = make({.name = name});
    for (const auto& unit : model.units) {
      const at::Tensor flat = beginning(*unit, 5, 0, unit->numel());
      for (std::int64_t begin = 0, end = 0; begin < unit->numel(); begin = end) {
        end = std::min(begin + 1 + begin * 7 % 40009, unit->numel());
        REQUIRE(at::equal(beginning(*unit, 5, begin, end), flat.narrow(0, begin, end - begin)));
      }
    }
  }
}

TEST_CASE("model: adapters have peft's names and shapes and begin as its do; nothing else begins otherwise") {
  const Adaptation adapters{.rank = 4, .alpha = 6, .targets = {"q_proj", "mlp.down_proj"}, .modules = {"final_norm"}};
  const model::Model plain = make({.name = "tiny-llama"});
  Settings settings{.name = "tiny-llama", .adaptation = adapters};
  CHECK_THROWS_WITH_AS(make(settings),
                       "--modules_to_save: no module of the model is named 'final_norm' (there is model.embed_tokens)",
                       Error);
  settings.adaptation.modules = {"model.norm"};
  const model::Model adapted = make(settings);
  std::map<std::string, unit::Parameter> added;
  std::int64_t trained = 0;
  for (const auto& unit : adapted.units) {
    for (const unit::Parameter& parameter : unit->parameters()) {
      if (parameter.added) added[parameter.name] = parameter;
      if (parameter.trained) trained += parameter.numel();
      CHECK(parameter.trained == (parameter.added || parameter.name == "model.norm.weight"));
      CHECK((parameter.offset < unit->trained()) == parameter.trained);
      if (parameter.added) continue;
      const Measured after = measured(adapted, parameter.name), before = measured(plain, parameter.name);
      CHECK(after.mean == before.mean);
    }
  }
  CHECK(trained == unit::trained(adapted.units));
  CHECK(added.size() == 2 * 2 * static_cast<std::size_t>(adapted.num_layers));
  const unit::Parameter &a = added.at("model.layers.1.mlp.down_proj.lora_A.weight"),
                        &b = added.at("model.layers.1.mlp.down_proj.lora_B.weight");
  CHECK(a.shape[0] == 4);
  CHECK(b.shape == std::vector<std::int64_t>{adapted.width, 4});
  // kaiming_uniform_ with a = sqrt(5): uniform within 1 / sqrt(columns), whose deviation is that over sqrt(3).
  const double within = 1 / std::sqrt(static_cast<double>(a.shape[1]));
  CHECK(measured(adapted, a.name).std == doctest::Approx(within / std::sqrt(3.0)).epsilon(0.05));
  CHECK(measured(adapted, b.name).std == 0);
  CHECK(target_modules(adapted.units) == std::vector<std::string>{"down_proj", "q_proj"});
  CHECK(adapters.scale() == 1.5);
}

TEST_CASE("model: normal begins as GPT-2 does: biases 0, norms 1, residual projections scaled by their number") {
  const model::Model model =
      model::make({.name = "tiny", .num_layers = 2, .seq_length = 8, .init_mean = 0.5, .init_std = 0.1});
  CHECK(measured(model, "transformer.wte.weight").mean == doctest::Approx(0.5).epsilon(0.02));
  CHECK(measured(model, "transformer.wte.weight").std == doctest::Approx(0.1).epsilon(0.02));
  CHECK(measured(model, kBlock + std::string("mlp.c_proj.weight")).std == doctest::Approx(0.05).epsilon(0.02));
  CHECK(measured(model, kBlock + std::string("mlp.c_proj.bias")).std == 0);
  CHECK(measured(model, kBlock + std::string("mlp.c_proj.bias")).mean == 0);
  CHECK(measured(model, "transformer.ln_f.weight").mean == 1);
}

TEST_CASE("model: gaussian draws every tensor from N(init_mean, init_std), none scaled") {
  const model::Model model = model::make(
      {.name = "tiny", .num_layers = 2, .seq_length = 8, .init_mean = 0.5, .init_std = 0.1, .init_gaussian = true});
  std::int64_t tensors = 0;
  for (const auto& owner : model.units) {
    for (const unit::Parameter& parameter : owner->parameters()) {
      INFO(parameter.name);
      const Measured found = measured(model, parameter.name);
      const double n = static_cast<double>(parameter.numel());  // five standard errors
      CHECK(std::fabs(found.mean - 0.5) < 5 * 0.1 / std::sqrt(n));
      CHECK(std::fabs(found.std - 0.1) < 5 * 0.1 / std::sqrt(2 * n));
      ++tensors;
    }
  }
  CHECK(tensors == 2 + 2 * 12 + 2);
  const model::Model normal = model::make({.name = "tiny", .num_layers = 2});
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    for (std::size_t i = 0; i < model.units[u]->parameters().size(); ++i)
      CHECK(model.units[u]->parameters()[i].decay == normal.units[u]->parameters()[i].decay);
  }
}

TEST_CASE("model: a sample is as long as asked for, else as the model's positions, at most 512") {
  CHECK(model::make({.name = "tiny"}).seq_length == 256);
  CHECK(model::make({.name = "tiny", .seq_length = 7}).seq_length == 7);
  CHECK(model::make({.name = "gpt2"}).seq_length == 512);
  CHECK_THROWS_AS(model::make({.name = "tiny", .seq_length = 257}), Error);
}

TEST_CASE("model: known names have as many parameters as was published of them") {
  // Of the in21k, which are published without a classifier, beside those of two labels.
  const std::map<std::string, std::int64_t> published = {{"gpt2", 124439808},
                                                         {"gpt2-medium", 354823168},
                                                         {"gpt2-large", 774030080},
                                                         {"gpt2-xl", 1557611200},
                                                         {"TinyLlama-1.1B", 1100048384},
                                                         {"Llama-2-7b-hf", 6738415616},
                                                         {"Meta-Llama-3-8B", 8030261248},
                                                         {"Meta-Llama-3-70B", 70553706496},
                                                         {"Meta-Llama-3.1-8B", 8030261248},
                                                         {"Llama-3.2-1B", 1235814400},
                                                         {"Llama-3.2-3B", 3212749824},
                                                         {"SmolLM-135M", 134515008},
                                                         {"SmolLM2-135M", 134515008},
                                                         {"SmolLM2-360M", 361821120},
                                                         {"SmolLM2-1.7B", 1711376384},
                                                         {"Qwen2-0.5B", 494032768},
                                                         {"Qwen2.5-0.5B", 494032768},
                                                         {"Qwen2.5-1.5B", 1543714304},
                                                         {"Qwen2.5-3B", 3085938688},
                                                         {"Qwen2.5-7B", 7615616512},
                                                         {"Qwen3-0.6B", 596049920},
                                                         {"Qwen3-1.7B", 1720574976},
                                                         {"Qwen3-4B", 4022468096},
                                                         {"Qwen3-8B", 8190735360},
                                                         {"Mistral-7B-v0.1", 7241732096},
                                                         {"Mistral-7B-v0.3", 7248023552},
                                                         {"OLMo-2-0425-1B", 1484916736},
                                                         {"OLMo-2-1124-7B", 7298617344},
                                                         {"Phi-3-mini-4k-instruct", 3821079552},
                                                         {"phi-4", 14659507200},
                                                         {"gemma-2-2b", 2614341888},
                                                         {"gemma-2-9b", 9241705984},
                                                         {"gemma-3-270m", 268098176},
                                                         {"gemma-3-1b-pt", 999885952},
                                                         {"Mixtral-8x7B-v0.1", 46702792704},
                                                         {"Mixtral-8x22B-v0.1", 140620634112},
                                                         {"Qwen3-30B-A3B", 30532122624},
                                                         {"Qwen3-235B-A22B", 235093634560},
                                                         {"gpt-oss-20b", 20914757184},
                                                         {"gpt-oss-120b", 116829156672},
                                                         {"vit-base-patch16-224", 86567656},
                                                         {"vit-base-patch16-224-in21k", 85798656 + 2 * 769},
                                                         {"vit-large-patch16-224", 304326632},
                                                         {"vit-huge-patch14-224-in21k", 630764800 + 2 * 1281}};
  for (const std::string& name : model::names()) {
    if (name.starts_with("tiny")) continue;  // ours
    CAPTURE(name);
    REQUIRE(published.contains(name));
    std::int64_t numel = 0;
    for (const auto& unit : model::make({.name = name}).units) {
      for (const unit::Parameter& parameter : unit->parameters()) numel += parameter.numel();
    }
    CHECK(numel == published.at(name));
  }
}

TEST_CASE("model: of experts a token meets as many parameters as was published") {
  const auto active = [](const char* name) {
    const model::Model model = model::make({.name = name});
    return unit::numel(model.units) - unit::idle(model.units);
  };
  CHECK(active("Mixtral-8x7B-v0.1") == 12879925248);                 // 12.9B of 46.7B
  CHECK(active("Qwen3-30B-A3B") == 3353032704);                      // 3.3B of 30.5B
  CHECK((active("gpt-oss-20b") - 201088 * 2880) / 100000000 == 36);  // 3.6B without the embedding
  CHECK(active("tiny-llama") == unit::numel(model::make({.name = "tiny-llama"}).units));
  const model::Model model = model::make({.name = "Mixtral-8x7B-v0.1"});
  // Six for each parameter of a product that a token meets, and attention.
  const double products = 6 * (12879925248.0 - 32000 * 4096 - 65 * 4096);
  CHECK(model.flops_per_token == products + 6.0 * 32 * 2 * 4096 * 512);
}

TEST_CASE(
    "model: the auxiliary loss of experts counts all layers and tokens but padding, and is left out where asked, "
    "and of an evaluation") {
  const at::Tensor tokens = at::randint(0, 256, {2, 24}, unit::generator(5), at::TensorOptions(at::kLong));
  for (const char* const name : {"tiny-mixtral", "tiny-qwen3-moe", "tiny-gpt-oss"}) {
    CAPTURE(name);
    const auto loss = [&](double factor, const unit::Batch& batch) {
      const model::Model model =
          model::make({.name = name, .num_layers = 3, .init_std = 0.1, .router_aux_loss_coef = factor});
      return forward(model, batch, true).last.item<double>();
    };
    const unit::Batch whole{tokens, tokens};
    const double without = loss(0, whole), once = loss(1, whole) - without, twice = loss(2, whole) - without;
    // K where all experts have as many tokens and as much probability; more where they have not.
    const double chosen = std::string(name) == "tiny-qwen3-moe" ? 3 : 2;
    CHECK(once > chosen);
    CHECK(once < 2 * chosen);
    CHECK(twice == doctest::Approx(2 * once).epsilon(1e-6));
    const model::Model evaluated =
        model::make({.name = name, .num_layers = 3, .init_std = 0.1, .router_aux_loss_coef = 1});
    CHECK(forward(evaluated, whole).last.item<double>() == without);
    CHECK(loss(-1, whole) == loss(std::string(name) == "tiny-gpt-oss" ? 0 : 0.001, whole));
    // Other tokens in the place of padding change nothing of it.
    unit::Batch padded{tokens.clone(), tokens.clone(), 1.0F};
    padded.targets.narrow(1, 17, 7).fill_(-100);
    padded.lengths = at::full({2}, 17, at::TensorOptions(at::kLong));
    const auto auxiliary = [&] { return loss(1, padded) - loss(0, padded); };
    const double before = auxiliary();
    padded.inputs.narrow(1, 17, 7).add_(1).remainder_(256);
    CHECK(auxiliary() == doctest::Approx(before).epsilon(1e-6));
    CHECK(std::fabs(before - once) > 1e-4);
    // Tokens without a target count, also those behind the last target.
    padded.targets.narrow(1, 9, 8).fill_(-100);
    CHECK(auxiliary() == doctest::Approx(before).epsilon(1e-6));
  }
}

TEST_CASE("model: adapters of experts are refused by name") {
  for (const auto& [target, modules, what] :
       {std::tuple("w1", "",
                   "--lora_targets: zs has no adapters for experts "
                   "(model.layers.0.block_sparse_moe.experts.0.w1): name products of attention"),
        std::tuple("q_proj", "experts",
                   "--modules_to_save: model.layers.0.block_sparse_moe.experts.0.w1 is of an "
                   "expert, whose weights peft has under other names: leave it out")}) {
    Adaptation adaptation{.rank = 2, .targets = {target}};
    if (*modules) adaptation.modules = {modules};
    CHECK_THROWS_WITH_AS(make({.name = "tiny-mixtral", .adaptation = adaptation}), what, Error);
  }
  // peft would take that of a dense layer for one of experts.
  CHECK_THROWS_WITH_AS(make({.name = "tiny-qwen3-moe", .adaptation = {.rank = 2, .targets = {"all-linear"}}}),
                       "--lora_targets: peft would take an adapter of model.layers.0.mlp.gate_proj for one of experts: "
                       "name products of attention (q_proj, k_proj, v_proj, o_proj)",
                       Error);
  CHECK_NOTHROW(make({.name = "tiny-qwen3-moe", .adaptation = {.rank = 2, .targets = {"q_proj"}}}));
  // Those of all products are of attention, as peft has them.
  const model::Model model = make({.name = "tiny-gpt-oss", .adaptation = {.rank = 2, .targets = {"all-linear"}}});
  CHECK(target_modules(model.units) == std::vector<std::string>{"k_proj", "o_proj", "q_proj", "v_proj"});
}

TEST_CASE("model: documents of one sample see nothing of each other, and each is as if it were alone") {
  const TemporaryFolder longrope;  // documents are shorter and longer than its original positions, samples longer
  write_file(longrope.file("config.json"), R"({"model_type": "phi3", "hidden_size": 64, "intermediate_size": 96,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64,
      "original_max_position_embeddings": 8, "rope_scaling": {"type": "longrope",
      "short_factor": [1, 1, 1, 1.5, 1.5, 2, 2, 2], "long_factor": [2, 2, 3, 3, 3, 4, 4, 4]}})");
  constexpr std::int64_t kLength = 48;
  const std::vector<std::int64_t> begins = {0, 5, 6, 40, 48, 70};  // in two samples; of windows some are longer
  const at::Tensor tokens = at::randint(0, 256, {2, kLength}, unit::generator(5), at::TensorOptions(at::kLong));
  const auto batch = [&](const at::Tensor& inputs) {
    return unit::Batch{inputs, inputs, 1.0F, unit::documents(begins, 2, kLength)};
  };
  for (const char* const name : {"tiny", "tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-mistral", "tiny-olmo2",
                                 "tiny-phi3", "tiny-gemma2", "tiny-gemma3", longrope.path().c_str()}) {
    for (const bool fused : {false, true}) {
      CAPTURE(name);
      CAPTURE(fused);
      const auto make = [&](std::int64_t length) {
        return model::make({.name = name, .num_layers = 2, .seq_length = length, .init_std = 0.1, .fused = fused});
      };
      const model::Model model = make(kLength);
      const at::Tensor packed_NV = forward(model, batch(tokens)).logits.reshape({2 * kLength, -1});
      for (std::size_t i = 0; i < begins.size(); ++i) {
        const std::int64_t count = (i + 1 < begins.size() ? begins[i + 1] : 2 * kLength) - begins[i];
        const at::Tensor alone = tokens.view({1, -1}).narrow(1, begins[i], count).contiguous();
        const at::Tensor its_TV = packed_NV.narrow(0, begins[i], count);
        CAPTURE(i);
        const model::Model as_long = make(count);
        for (const model::Model* const by : {&model, &as_long}) {
          const at::Tensor expected_TV = forward(*by, {alone, alone}).logits.select(0, 0);
          CHECK((its_TV - expected_TV).abs().max().item<double>() < 4e-6 * expected_TV.abs().max().item<double>());
        }
        // Other tokens of the others change no bit of it.
        at::Tensor other = tokens.clone();
        other.view({-1}).add_(1).remainder_(256);
        other.view({-1}).narrow(0, begins[i], count).copy_(alone.view({-1}));
        CHECK(at::equal(forward(model, batch(other)).logits.reshape({2 * kLength, -1}).narrow(0, begins[i], count),
                        its_TV));
      }
    }
  }
}

namespace {

/// The model of a config.json.
Model of_file(const TemporaryFolder& folder, const nlohmann::json& config) {
  write_file(folder.file("config.json"), config.dump());
  return make({.name = folder.path(), .seq_length = 8, .init_std = 0.1});
}

/// The gradient of the embedding of tokens.
at::Tensor embedding_gradient(const Model& model, const at::Tensor& tokens_BT) {
  std::vector<std::vector<at::Tensor>> parameters;
  const unit::Batch batch{tokens_BT, tokens_BT};
  at::Tensor x, beside;
  const unit::ForwardContext context{.batch = batch, .beside = &beside};
  for (const auto& unit : model.units) {
    parameters.push_back(unit::views(*unit, beginning(*unit, 3, 0, unit->numel())));
    for (at::Tensor& parameter : parameters.back()) parameter = parameter.clone().requires_grad_();
    const int owner = unit->tied_to();
    x = unit->forward(x, parameters.back(),
                      owner < 0 ? std::span<const at::Tensor>() : parameters[static_cast<std::size_t>(owner)], context);
  }
  x.backward();
  return parameters[0][0].grad();
}

}  // namespace

TEST_CASE("model: no input trains the row of the padding token, in the families that have one") {
  const TemporaryFolder folder;
  const at::Tensor tokens = at::randint(0, 9, {2, 8}, unit::generator(5), at::TensorOptions(at::kLong));
  tokens.fill_diagonal_(7);
  for (const char* const name :
       {"tiny", "tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-mistral", "tiny-olmo2", "tiny-phi3", "tiny-gemma2",
        "tiny-gemma3", "tiny-mixtral", "tiny-qwen3-moe", "tiny-gpt-oss"}) {
    CAPTURE(name);
    nlohmann::json config = nlohmann::json::parse(make({.name = name, .num_layers = 2}).config_json);
    const auto gradient = [&](const nlohmann::json& padding) {
      config["pad_token_id"] = padding;
      return embedding_gradient(of_file(folder, config), tokens);
    };
    const at::Tensor without = gradient(nullptr), with = gradient(7);
    if (std::string(name) == "tiny") {
      CHECK(at::equal(with, without));
      continue;
    }
    CHECK(at::equal(with.narrow(0, 0, 7), without.narrow(0, 0, 7)));
    CHECK_FALSE(at::equal(with[7], without[7]));
    if (config["tie_word_embeddings"] == false) CHECK(with[7].abs().max().item<double>() == 0);
    CHECK(at::equal(gradient(7 - config["vocab_size"].get<std::int64_t>()), with));  // from the end
    CHECK(nlohmann::json::parse(of_file(folder, config).config_json)["pad_token_id"] == 7);
    CHECK_THROWS_WITH_AS(gradient(config["vocab_size"]), doctest::Contains("expected less than vocab_size"), Error);
  }
  // Without the key a class has its own.
  nlohmann::json config = nlohmann::json::parse(make({.name = "tiny-gemma2", .num_layers = 2}).config_json);
  config.erase("pad_token_id");
  CHECK(nlohmann::json::parse(of_file(folder, config).config_json)["pad_token_id"] == 0);
}

TEST_CASE("model: the other names of GPT-2's sizes count, and keys that GPT-2 and ViT do not have are refused") {
  const TemporaryFolder folder;
  nlohmann::json config = {{"model_type", "gpt2"}, {"vocab_size", 320}, {"n_embd", 24},   {"n_layer", 2},
                           {"n_head", 4},          {"n_positions", 64}, {"attn_pdrop", 0}};
  config["num_attention_heads"] = 2;
  config["hidden_size"] = 32;
  config["num_hidden_layers"] = 1;
  config["max_position_embeddings"] = 16;
  const Model model = of_file(folder, config);
  CHECK(model.num_heads == 2);
  CHECK(model.width == 32);
  CHECK(model.num_layers == 1);
  CHECK(model.positions == 16);
  CHECK_NOTHROW(require_same(model, folder.path()));
  config["alibi"] = true;
  CHECK_THROWS_WITH_AS(of_file(folder, config), doctest::Contains("alibi is not known, of a model of type gpt2"),
                       Error);
  nlohmann::json vit = nlohmann::json::parse(make({.name = "tiny-vit"}).config_json);
  vit["num_register_tokens"] = 4;
  write_file(folder.file("config.json"), vit.dump());
  CHECK_THROWS_WITH_AS(make({.name = folder.path()}),
                       doctest::Contains("num_register_tokens is not known, of a model of type vit"), Error);
}

TEST_CASE("model: the keys of rotary positions must agree on theta, and null heads of keys are those of queries") {
  const TemporaryFolder folder;
  nlohmann::json config = nlohmann::json::parse(make({.name = "tiny-qwen2", .num_layers = 2}).config_json);
  config["num_key_value_heads"] = nullptr;
  CHECK(of_file(folder, config).num_key_value_heads == config["num_attention_heads"]);
  const nlohmann::json linear = {{"rope_type", "linear"}, {"factor", 2}};
  config["rope_scaling"] = linear;
  config["rope_parameters"] = linear;
  config["rope_parameters"]["rope_theta"] = 5e5;
  config["rope_theta"] = 5e5;
  CHECK_NOTHROW(of_file(folder, config));
  config.erase("rope_theta");
  CHECK_THROWS_WITH_AS(of_file(folder, config),
                       doctest::Contains("without rope_theta it has 10000.0, and that 500000.0"), Error);
}

}  // namespace zs::model
