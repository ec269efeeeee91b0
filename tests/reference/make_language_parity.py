#!/usr/bin/env python3
"""Makes the files parity_gpt.json and parity_bert.json that tests/train/test_language_models.cpp holds Halfstep's models
against.

    python3 tests/reference/make_language_parity.py     (Debian: python3-torch; PyPI: transformers)

Hugging Face's models run one step in double, and ten of AdamW. Weights and tokens are drawn from a hash of their names,
and gradients and the last weights kept as norms and projections, as in make_parity.py. Of the models at their full size
the names and shapes are kept.
"""
import json
import os

import numpy as np
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification, BertModel, GPT2Config, GPT2Model

from make_parity import digest, shortened, uniform, words

BATCH, LENGTH, VOCABULARY = 3, 10, 37
# BERT's own epsilon. A bias of keys has no gradient but for rounding, which a smaller one would blow up to whole steps.
RATE, EPSILON, DECAY, STEPS = 1e-3, 1e-6, 0.01, 10
EAGER = dict(attn_implementation="eager")


def first_values(name, shape):
    if len(shape) == 2:
        return uniform(name, shape, -0.3, 0.3)
    norm = "ln_" in name or "LayerNorm" in name
    return uniform(name, shape, 0.5, 1.5) if norm and name.endswith("weight") else uniform(name, shape, -0.25, 0.25)


def integers(name, shape, below):
    return torch.tensor((words(name, int(np.prod(shape))) % np.uint64(below)).astype(np.int64)).reshape(shape)


def initialised(model):
    model.double().eval()
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(first_values(name, tuple(tensor.shape)))
    return model


def result_of(model, forward):
    """`forward` returns the logits and the loss."""
    logits, loss = forward()
    loss.backward()
    result = {"loss": loss.item(), "logits": digest("logits", logits),
              "gradients": {name: digest(name, p.grad) for name, p in model.named_parameters()}}
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, eps=EPSILON, weight_decay=DECAY)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = forward()[1]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return result | {"rate": RATE, "epsilon": EPSILON, "decay": DECAY, "losses": losses,
                     "last": {name: digest(name, p) for name, p in model.named_parameters()}}


def gpt():
    model = initialised(GPT2Model(GPT2Config(vocab_size=VOCABULARY, n_positions=12, n_embd=24, n_layer=2, n_head=3,
                                         bos_token_id=None, eos_token_id=None, **EAGER)))
    tokens = integers("tokens", (BATCH, LENGTH), VOCABULARY)
    labels = integers("labels", (BATCH, LENGTH), VOCABULARY)

    def forward():
        logits = model(tokens).last_hidden_state @ model.wte.weight.T
        return logits, F.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1))
    return result_of(model, forward)


def bert():
    model = initialised(BertForSequenceClassification(
        BertConfig(vocab_size=VOCABULARY, max_position_embeddings=12, hidden_size=24, num_hidden_layers=2,
                   num_attention_heads=3, intermediate_size=40, num_labels=4, **EAGER)))
    tokens = integers("tokens", (BATCH, LENGTH), VOCABULARY - 1) + 1  # 0 is padding, which has no gradient there
    types = integers("types", (BATCH, LENGTH), 2)
    mask = (torch.arange(LENGTH)[None] < torch.tensor([10, 4, 7])[:, None]).long()
    labels = integers("labels", (BATCH,), 4)

    def forward():
        logits = model(tokens, attention_mask=mask, token_type_ids=types).logits
        return logits, F.cross_entropy(logits, labels)
    return result_of(model, forward)


def names_and_shapes(model):
    return [f"{name} {'x'.join(map(str, tensor.shape))}" for name, tensor in model.named_parameters()]


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    made = {"gpt": gpt(), "bert": bert()}
    with torch.device("meta"):
        made["gpt"]["tensors"] = names_and_shapes(GPT2Model(GPT2Config()))
        made["bert"]["tensors"] = names_and_shapes(BertModel(BertConfig()))
    for name, numbers in made.items():
        with open(os.path.join(folder, f"parity_{name}.json"), "w") as file:
            json.dump(shortened(numbers), file, indent=0)
            file.write("\n")


if __name__ == "__main__":
    main()
