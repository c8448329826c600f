/*
 * What moves, by the model of accesses (access_model.h): exchanges (policy/predict/exchange_choice.h) and swaps
 * (placement_swap.h), and what became of them. Any thread may call it.
 */
#ifndef SPILL_ACCESS_CHOICE_H
#define SPILL_ACCESS_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange_choice.h"

/*
 * Chooses the chunks of an exchange, or of a swap (choice->swaps); true if a chunk comes. If an exchange does
 * not pay, the site's next attempt is later. Stores the cost of a move, ns a MiB. pre: `site` is from an advice
 */
bool spill_access_model_choose(struct spill_exchange_choice *choice, uint16_t site, uint64_t *cost_ns);

/* The chunks with a verdict have swapped. They do not swap again for a while. */
void spill_access_model_swapped(const struct spill_exchange_choice *choice);

/*
 * Moves took `ns`, and `waited_ns` before that for an idle device: an exchange or a swap of `bytes` to the device. 0: their time tells
 * nothing about other moves, because host memory was made for them.
 */
void spill_access_model_moved(const struct spill_exchange_choice *choice, uint64_t bytes, uint64_t ns,
                              uint64_t waited_ns);

#endif
