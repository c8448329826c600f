/*
 * The order of the moves of an exchange. Chunks that leave make room for those that come, and both ways of the link
 * are used at once.
 */
#ifndef SPILL_EXCHANGE_ORDER_H
#define SPILL_EXCHANGE_ORDER_H

#include "exchange.h"

/*
 * Appends all moves of an open exchange to `order`, by its spares and its room. Each chunk that comes has memory
 * when the moves ahead of it have finished. Chunks that find none come last. The lists of the exchange keep their
 * moves, in another order. False: no memory for the order. pre: the mover is held
 */
bool spill_exchange_make_order(struct spill_exchange *exchange, struct spill_move_batch *order);

#endif
