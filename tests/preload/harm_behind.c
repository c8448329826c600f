/* Has the name behind which harm_front.c finds the simulator when the tests run. */
