/* Which parts of a program's arguments are secrets. */
#include "start_line.h"

#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_character(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+';
}

/* Ignores case as the C locale does. strncasecmp follows the program's, with a Turkish I. */
static bool same_word(const char *text, const char *word, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];

		if (c != word[i])
			return false;
	}
	return true;
}

static bool contains(const char *text, size_t count, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i + length <= count; i++)
		if (same_word(text + i, word, length))
			return true;
	return false;
}

/* "apikey" and "authToken" end in a secret word, "tokenizer" and "keyboard" do not. */
static bool ends_in(const char *text, size_t count, const char *word)
{
	size_t length = strlen(word);

	return count >= length && same_word(text + count - length, word, length);
}

static bool is_secret_word(const char *word, size_t count)
{
	static const char *const anywhere[] = {"secret", "password", "passwd", "passphrase", "credential"};
	static const char *const last[] = {"key",  "keys", "token",     "tokens",
	                                   "auth", "pwd",  "signature", "authorization"};
	/* hft is llama.cpp's token, sig that of a URL of Azure. */
	static const char *const whole[] = {"pass", "hft", "sig", "creds", "cookie", "jwt", "otp"};

	for (size_t i = 0; i < sizeof(anywhere) / sizeof(anywhere[0]); i++)
		if (contains(word, count, anywhere[i]))
			return true;
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (ends_in(word, count, last[i]))
			return true;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (count == strlen(whole[i]) && same_word(word, whole[i], count))
			return true;
	return false;
}

/* Words end at a separator, or before a capital: --api-key, apiKey, model.api_key. */
static bool is_secret_name(const char *name, size_t count)
{
	size_t start = 0;

	for (size_t end = 0; end <= count; end++) {
		bool separator = end == count || !is_letter(name[end]);
		bool capital = !separator && end > start && name[end] < 'a' && name[end - 1] >= 'a';

		if ((separator || capital) && end > start && is_secret_word(name + start, end - start))
			return true;
		if (separator)
			start = end + 1;
		else if (capital)
			start = end;
	}
	return false;
}

/* A number of tokens (--max-tokens 128) is no secret. Nor is a token's index. */
static bool counts_tokens(const char *name, size_t count)
{
	return ends_in(name, count, "tokens") || ends_in(name, count, "token_id") ||
	       ends_in(name, count, "token-id");
}

static bool is_count(const char *value, size_t length)
{
	return length > 0 && length <= 9 && strspn(value, "0123456789") >= length;
}

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (is_name_character(text[length]))
		length++;
	return length;
}

/* True if a header or any URL in the argument has a login. */
static bool carries_login(const char *argument)
{
	size_t length = strlen(argument);

	if (contains(argument, length, "authorization:") || contains(argument, length, "bearer "))
		return true;
	for (const char *url = argument; (url = strstr(url, "://"));) {
		url += 3;
		if (memchr(url, '@', strcspn(url, "/?# ")))
			return true;
	}
	return false;
}

#define DIGITS "0123456789"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/*
 * True if a token of a known service begins here: its prefix, and 16 characters or more, of which
 * one is a capital or a digit. So sk-learn-from-examples is none.
 */
static bool begins_token(const char *text)
{
	static const char *const prefixes[] = {
	    "hf_",    "sk-",    "sk_live_", "ghp_",  "gho_",  "ghu_",      "ghs_", "github_pat_",
	    "glpat-", "nvapi-", "xoxb-",    "xoxp-", "AKIA",  "ASIA",      "AIza", "ya29.",
	    "eyJ",    "r8_",    "gsk_",     "npm_",  "pypi-", "dckr_pat_",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t prefix = strlen(prefixes[i]);

		if (strncmp(text, prefixes[i], prefix) != 0)
			continue;
		size_t length = strspn(text + prefix, "abcdefghijklmnopqrstuvwxyz" CAPITALS DIGITS "_-");
		if (length >= 16 && strcspn(text + prefix, CAPITALS DIGITS) < length)
			return true;
	}
	return false;
}

/* The length of the part before the first such token, which begins a word. */
static size_t length_before_token(const char *argument)
{
	for (size_t i = 0;; i++) {
		bool inside = i > 0 && argument[i - 1] != '/' && is_name_character(argument[i - 1]);

		if (argument[i] == '\0' || (!inside && begins_token(argument + i)))
			return i;
	}
}

/*
 * The offset of the value that belongs to the name argument[from..end), or 0 if it has none. The
 * value follows NAME= in an option, a list, a URL or a shell command. Or it follows the "NAME: " of
 * a header, the "NAME": of JSON, or --NAME.
 */
static size_t value_of(const char *argument, size_t from, size_t end, bool first)
{
	bool option = argument[first ? 0 : from] == '-';
	size_t next = end + strspn(argument + end, "\"'\\");

	if (next > end)
		next += strspn(argument + next, " ");
	if (argument[next] == '=' ||
	    (argument[next] == ':' && (next > end || first || argument[next + 1] == ' ')))
		return next + 1;
	return next == end && option && (argument[next] == ' ' || argument[next] == '\t') ? next + 1 : 0;
}

/* The length of the part before the first secret value. */
static size_t length_before_secret(const char *argument)
{
	size_t dashes = strspn(argument, "-"), end, value;

	for (size_t from = dashes;; from = end + 1) {
		end = from + name_length(argument + from);
		value = value_of(argument, from, end, from == dashes);
		if (value && is_secret_name(argument + from, end - from)) {
			const char *text = argument + value + strspn(argument + value, " ");

			if (!counts_tokens(argument + from, end - from) || !is_count(text, name_length(text)))
				return value;
		}
		if (argument[end] == '\0')
			return end;
	}
}

size_t spill_redact_shown(struct spill_redact *state, const char *argument)
{
	struct spill_redact before = *state;
	size_t from = strspn(argument, "-"), end = from + name_length(argument + from);

	/* A hidden argument may be an option too: in `--use-auth --password x`, x is secret. */
	state->next = from > 0 && argument[end] == '\0' && is_secret_name(argument + from, end - from);
	state->count = counts_tokens(argument + from, end - from);
	state->list =
	    before.next ? !(before.count && is_count(argument, strlen(argument))) : before.list && from == 0;
	if (state->list || carries_login(argument))
		return 0;
	size_t secret = length_before_secret(argument), token = length_before_token(argument);
	return secret < token ? secret : token;
}
