# Completion of spill(1) for fish; what is between the table's lines is written by hand.

function __spill_no_command
    test (count (commandline -opc)) -eq 1
end

# Of `spill run` and its like: which word the program is, once it is there.
function __spill_program_at
    set -l words (commandline -opc)
    contains -- "$words[2]" $__spill_runners; or return 1
    set -l at 3
    while test $at -le (count $words)
        if test "$words[$at]" = --
            set at (math $at + 1)
            break
        else if not string match -q -- '-*' $words[$at]
            break
        else if contains -- "$words[2]:$words[$at]" $__spill_valued
            set at (math $at + 1)
        end
        set at (math $at + 1)
    end
    test $at -le (count $words); and echo $at
end

function __spill_operands_of
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"; and not __spill_program_at >/dev/null
end

function __spill_options_of
    __spill_operands_of $argv; and not contains -- -- (commandline -opc)
end

# The rest of the line as that program's own completion has it.
function __spill_of_program
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    complete -C (string join ' ' -- (string escape -- $words[(__spill_program_at)..]) "$token")
end

# What is there of a word; behind = of an option's value.
function __spill_token
    string replace -r -- '^--[^=]*=' '' (commandline -ct)
end

# What can stand in a word's place, by its kind.
function __spill_file
    __fish_complete_path (__spill_token)
end
function __spill_folder
    __fish_complete_directories (__spill_token)
end
function __spill_files_by
    __fish_complete_path (__spill_token) | string match -r ".*(?:/|\\.$argv[1])(?:\t.*)?\$"
end
function __spill_policy
    __spill_files_by conf
end
function __spill_program
    set -l token (__spill_token)
    complete --do-complete="$token"
end
function __spill_profile
    printf '%s\n' $__spill_profiles
end
function __spill_log
    set -l state ~/.local/state
    set -q XDG_STATE_HOME; and set state $XDG_STATE_HOME
    set -l logs $state/spill/*.jsonl
    # The newest first.
    test (count $logs) -gt 0; and command ls -t -- $logs
    __spill_files_by jsonl
end
function __spill_size
end
function __spill_number
end
function __spill_text
end

complete -c spill -f
complete -c spill -s h -l help -n 'not __spill_program_at >/dev/null' -d 'print help'
complete -c spill -s V -l version -n __spill_no_command -d 'print the version'
complete -c spill -n __spill_no_command -a help -d 'say how a command is used'
complete -c spill -n '__spill_operands_of help' -a '$__spill_commands'
complete -c spill -n '__spill_program_at >/dev/null' -a '(__spill_of_program)'
@TABLE@
