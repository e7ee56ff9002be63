# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_refloat_global_optspecs
    string join \n o/output= config= store= q/quiet v/verbose no-color progress= h/help V/version
end

function __fish_refloat_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_refloat_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_refloat_using_subcommand
    set -l cmd (__fish_refloat_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c refloat -n "__fish_refloat_needs_command" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_needs_command" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_needs_command" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_needs_command" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_needs_command" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_needs_command" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_needs_command" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_needs_command" -s V -l version -d 'Print version'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "status" -d 'What would be lost now, what runs, what waits, what comes next'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "snapshot" -d 'Take, list, show, verify, export, import and pin snapshots'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "prune" -d 'Remove what the retention rules let go, after showing why'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "defrag" -d 'Give the free pages of the own member\'s database back to its disk, when that pays'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "jobs" -d 'What the daemon does and did'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "schedule" -d 'When the daemon takes snapshots'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "store" -d 'Places for backups'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "db" -d 'Read etcd database files, with or without trailer, plain or zstd; never writes'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "discover" -d 'What runs on this node, read from its files: etcd, the apiserver, their certificates'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "setup" -d 'Write what was found into the configuration, hand over the credentials, start the services'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "config" -d 'Check and show the configuration'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "daemon" -d 'Run the service: schedules, jobs, control socket'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "fence" -d 'What balancers hear about this node; hold and release it by hand'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "answer" -d 'Run the service that balancers ask'
complete -c refloat -n "__fish_refloat_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c refloat -n "__fish_refloat_using_subcommand status" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand status" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand status" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand status" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand status" -l watch -d 'Show it again on each change'
complete -c refloat -n "__fish_refloat_using_subcommand status" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand status" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand status" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "take" -d 'Take a snapshot, verify the stored bytes, publish it in every store'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "list" -d 'What there is, newest first'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "show" -d 'Everything known about one snapshot'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "verify" -d 'Check stored bytes again: hashes, page tree, rows'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "export" -d 'Write a snapshot as the file that `etcdutl snapshot restore` accepts'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "import" -d 'Verify a file of etcdctl, etcdutl, RKE2, k3s or kubespray and store it like a snapshot of our own'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "pin" -d 'Never remove this snapshot, whatever the retention says'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "unpin" -d 'Leave a pinned snapshot to the retention again'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and not __fish_seen_subcommand_from take list show verify export import pin unpin tag" -f -a "tag" -d 'Remember words with a snapshot'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l member -d 'Stream from this member: name, id in hex or client URL' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l tag -d 'Remember this word with the snapshot; may be given several times' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l no-wait -d 'Queue it in the daemon and return at once. Without a daemon: fail at once when another snapshot is under way'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l dry-run -d 'Check the member and the space of the stores, then stop'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from take" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l node -d 'Only snapshots that this node took' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l tag -d 'Only snapshots with this tag' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l limit -d 'Stop after so many' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l all-lineages -d 'Also snapshots of other clusters that share the store'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l foreign -d 'Also the names of what refloat did not write'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l all -d 'Every snapshot of this cluster'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l no-wait -d 'Queue it in the daemon and return at once; not for a file'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -l to -d 'File to create; an existing one is never replaced' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l lineage -d 'The lineage to join, where the file does not tell which cluster it is from' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l tag -d 'Remember this word with the snapshot; may be given several times' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l pin -d 'Never remove it, whatever the retention says'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l allow-unproven -d 'Also take a file without a SHA-256 trailer: listed as unverified, never counted as a backup'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l dry-run -d 'Judge the file and the space of the stores, then stop'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -l reason -d 'Why, for whoever finds it later' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from pin" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -l reason -d 'Why, for whoever finds it later' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from unpin" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand snapshot; and __fish_seen_subcommand_from tag" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l plan -d 'Only if the plan is still the one with this hash, which a dry run has shown; its first 8 digits suffice' -r
complete -c refloat -n "__fish_refloat_using_subcommand prune" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l dry-run -d 'Show what would be removed, and remove nothing'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l yes -d 'Do not ask'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l trust-clock -d 'Go on although the clock is in doubt: you have looked, and it is right'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l no-wait -d 'Queue it in the daemon, one job a store, and return at once: by the rules, as after each snapshot'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l dry-run -d 'Show what would be done, and do nothing'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l yes -d 'Do not ask'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l anyway -d 'Also where it frees little'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l no-wait -d 'Queue it in the daemon and return at once. Without a daemon: fail at once when a snapshot is under way'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand defrag" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -f -a "list" -d 'What runs, what waits and why, and how the last ones ended'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -f -a "show" -d 'Everything known about one job'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -f -a "wait" -d 'Wait until a job is over; its exit code is this command\'s'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and not __fish_seen_subcommand_from list show wait cancel" -f -a "cancel" -d 'Stop a job: it ends within five seconds, at any step'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -l open -d 'Only those that are not over'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand jobs; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -f -a "list" -d 'Each schedule with its last decisions and its next run'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -f -a "explain" -d 'The next slots, and what will happen at each'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -f -a "pause" -d 'Decide no slot with a run, until it is resumed or the time is over'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and not __fish_seen_subcommand_from list explain pause resume" -f -a "resume" -d 'Go on after a pause: the next slot runs'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -s n -l number -d 'How many slots' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l for -d 'For so long' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l until -d 'Until this time' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand schedule; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -f -a "init" -d 'Make the directory of a configured store a store, also one that holds other things'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -f -a "list" -d 'The configured stores with their state and space'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -f -a "check" -d 'Look whether each store can be read, written and trusted'
complete -c refloat -n "__fish_refloat_using_subcommand store; and not __fish_seen_subcommand_from init list check retire" -f -a "retire" -d 'Remove all snapshots of a cluster, a history or a node that is no more'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l timeline -d 'Only this timeline: its number, or number and name as a snapshot shows them' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l node -d 'Only what this node took' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l dry-run -d 'Show what would be removed, and remove nothing'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l yes -d 'Do not ask'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand store; and __fish_seen_subcommand_from retire" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "inspect" -d 'What the file is: pages, revisions, members, versions'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "check" -d 'Check pages and rows; exit code 65 with every finding'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "hashkv" -d 'HashKV, as a live member would compute it'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "keys" -d 'Keys at the newest revision'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "get" -d 'The value of one key, as its bytes'
complete -c refloat -n "__fish_refloat_using_subcommand db; and not __fish_seen_subcommand_from inspect check hashkv keys get diff" -f -a "diff" -d 'What differs between two files or snapshots, by prefix'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l revision -d 'Up to this revision; default: the newest in the file' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l compact-revision -d 'As if compacted at this revision, 0 or -1 for never; default: as the file is' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from hashkv" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -l prefix -d 'Only keys that begin with this' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from keys" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -l revision -d 'As it was at this revision; default: the newest in the file' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l revision-a -d 'A as it was at this revision; default: its newest' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l revision-b -d 'B as it was at this revision; default: its newest' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l prefix -d 'Only keys that begin with this' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l depth -d 'Parts of a path that make a prefix; default: all but the last for Kubernetes, else 2' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l keys -d 'Also every key: + added, ~ changed, - removed'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l exit-code -d 'End with 2 when anything differs'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand db; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand discover" -l root -d 'Look below this directory instead of /' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand discover" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand discover" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand discover" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand discover" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand discover" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand discover" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand discover" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand discover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l kubeconfig -d 'Kubeconfig of an administrator, used once to make refloat\'s own identity in Kubernetes' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l root -d 'Set up the node below this directory instead of /' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand setup" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l dry-run -d 'Show what would be done, and do nothing'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l no-kubernetes -d 'Leave Kubernetes alone'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand setup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -f -a "check" -d 'Read and validate the configuration; exit code 78 with file and line where it is wrong'
complete -c refloat -n "__fish_refloat_using_subcommand config; and not __fish_seen_subcommand_from check show" -f -a "show" -d 'Print the values in force, as a configuration file'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Name the file and line of each value'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand daemon" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -f -a "status" -d 'What balancers hear now, and why'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -f -a "hold" -d 'Keep this node in service, or take it out, by hand: it wins over every decision, also while health is dead'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and not __fish_seen_subcommand_from status hold release" -f -a "release" -d 'Put this node back into service at once, whatever took it out, and end a hold'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l for -d 'For so long, such as 30m' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l reason -d 'Shown to whoever asks, and to balancers' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l down -d 'Out of service instead of in it'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from hold" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -l for -d 'No fence for so long' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand fence; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand answer" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand answer" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand answer" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand answer" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand answer" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand answer" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand answer" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand answer" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c refloat -n "__fish_refloat_using_subcommand completions" -s o -l output -d 'Form of the result on standard output, and of errors on standard error' -r -f -a "table\t'For people'
json\t'One document'
jsonl\t'One line per element'"
complete -c refloat -n "__fish_refloat_using_subcommand completions" -l config -d 'Read this configuration file alone, instead of /etc/refloat/refloat.toml and conf.d' -r -F
complete -c refloat -n "__fish_refloat_using_subcommand completions" -l store -d 'Only this store' -r
complete -c refloat -n "__fish_refloat_using_subcommand completions" -l progress -d 'How progress is shown on standard error' -r -f -a "auto\t'A bar on a terminal, plain lines elsewhere'
none\t'Warnings alone'
jsonl\t'One JSON line per step, at most two per second within one'"
complete -c refloat -n "__fish_refloat_using_subcommand completions" -s q -l quiet -d 'Show warnings and errors only'
complete -c refloat -n "__fish_refloat_using_subcommand completions" -s v -l verbose -d 'Say more on standard error; twice for details'
complete -c refloat -n "__fish_refloat_using_subcommand completions" -l no-color -d 'No colours; NO_COLOR in the environment does the same'
complete -c refloat -n "__fish_refloat_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
