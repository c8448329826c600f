"""What the storms under a sanitizer are run with."""

# use_sigaltstack: ASan's own clean-up of a cancelled thread trips over itself otherwise (gcc 12).
SANITIZERS = {"ASAN_OPTIONS": "use_sigaltstack=0:detect_stack_use_after_return=1",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1"}
