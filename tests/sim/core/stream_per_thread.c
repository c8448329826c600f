/* Per-thread default streams: a thread has one in each context that it uses, until it ends. */
#include <stdlib.h>

#include "core_internal.h"

struct own { /* a stream of the calling thread, in a list */
	struct own *next;
	uint64_t context;
	struct sim_stream *stream;
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void own_gone(void *data)
{
	for (struct own *own = data, *next; own; own = next) {
		next = own->next;
		/* Its context may have ended, and the stream with it. Ids are never used twice. */
		stream_close(own->stream, own->context);
		free(own);
	}
}

static void own_start(void)
{
	pthread_key_create(&own_key, own_gone);
}

struct sim_stream *sim_stream_per_thread(struct sim_context *context)
{
	if (!sim_context_alive(context))
		return NULL;
	pthread_once(&own_once, own_start);
	struct own *first = pthread_getspecific(own_key);
	for (struct own *own = first; own; own = own->next)
		if (own->context == context->id)
			return own->stream;
	sim_context_unblocked(context);
	struct own *own = malloc(sizeof(*own));
	if (!own || stream_create(context, false, 0, 0, &own->stream)) {
		free(own);
		return NULL;
	}
	stream_be_lazy(own->stream);
	own->context = context->id;
	own->next = first;
	pthread_setspecific(own_key, own);
	return own->stream;
}
