// Written by `npm run api` from docs/openapi.json.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AddFact: {
            tags?: string[];
            text: string;
        };
        Alert: {
            /**
             * Format: int64
             * @description How often it happened while the alert lasted.
             */
            count: number;
            /**
             * Format: int64
             * @description Unix milliseconds: when there was enough of it for an alert, and when it last happened.
             */
            first_at: number;
            kind: components["schemas"]["AlertKind"];
            /** Format: int64 */
            last_at: number;
            /** @description For people. */
            message: string;
            /** @description The runtime path below which files are missing. */
            path?: string | null;
            /** @description Name of the sandbox at that time. */
            sandbox: string;
            /** @description Which it is, whatever it is called by now. */
            sandbox_id?: string;
            user?: string | null;
        };
        /** @enum {string} */
        AlertKind: "reconnect_storm" | "missing_runtime_path" | "unknown";
        /** @description What the gateway noticed about the pages that use it. */
        AlertList: {
            /** @description Newest last; the oldest of very many are forgotten. */
            alerts: components["schemas"]["Alert"][];
        };
        /** @description An error as the wire carries it: the body is `{"error": {...}}`. */
        ApiError: {
            /** @description What to do about it. */
            hint?: string | null;
            kind: components["schemas"]["ErrorKind"];
            /** @description Lower case, no full stop, names the path or value. */
            message: string;
        };
        Approve: {
            /** @default false */
            allow: boolean;
            /**
             * @description The `toolCallId` of the request.
             * @default
             */
            call: string;
        };
        /** @description Whoever is at work by other means than a command or a file call of their own. */
        AttendRequest: {
            /** @default [] */
            by: components["schemas"]["Author"][];
        };
        /** @description Something that happened at the door of the computer. */
        AuditEvent: {
            address?: string | null;
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            at: number;
            detail?: string | null;
            /** @description `sign_in`, `sign_in_refused`, `session_ended`, `token_created`, ... */
            event: string;
            /** Format: int64 */
            id: number;
            /** @description The DID that it is about, if one is known. */
            who?: string | null;
        };
        AuditPage: {
            /** @description Newest first. */
            events: components["schemas"]["AuditEvent"][];
            /**
             * Format: int64
             * @description Pass it as `before` for what is older.
             */
            next?: number | null;
        };
        Author: {
            call: string;
            /** @enum {string} */
            kind: "api";
        } | {
            id: string;
            /** @enum {string} */
            kind: "command";
            line: string;
        } | {
            call?: string | null;
            id: string;
            /** @enum {string} */
            kind: "conversation";
        } | {
            /** @enum {string} */
            kind: "ssh";
            session: string;
        };
        /** @description Somebody's work. */
        By: {
            author: components["schemas"]["Author"];
            /** @enum {string} */
            kind: "author";
        } | {
            /** @enum {string} */
            kind: "last_command";
        };
        /** @description One call, as the record keeps it. */
        CallInfo: {
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            at: number;
            /** Format: int64 */
            cached_tokens: number;
            conversation?: string | null;
            /** Format: double */
            dollars: number;
            /** Format: int64 */
            id: number;
            /** Format: int64 */
            input_tokens: number;
            model: string;
            /** Format: int64 */
            output_tokens: number;
            path: string;
            provider: string;
            /** @description SHA-256 of the body as the client sent it, in hex; empty when it was refused. */
            request_hash: string;
            response_hash?: string | null;
            run?: string | null;
            sandbox?: string | null;
            /** @description `open`, `settled`, `kept` (its reservation counts), `failed` or `refused` (it was not made). */
            state: string;
            /** Format: int32 */
            status?: number | null;
            /**
             * Format: int64
             * @description How many such calls within some minutes were refused, when it was not the only one.
             */
            times?: number | null;
            /** @description The policy token, by id. */
            token: string;
            /** Format: int64 */
            took_ms?: number | null;
            /** @description Why it was refused: `budget`, `rate`, `stopped`, or `forbidden` for the model. */
            verdict?: string | null;
        };
        CallPage: {
            /** @description Newest first. */
            calls: components["schemas"]["CallInfo"][];
            /**
             * Format: int64
             * @description Pass it as `before` for what is older.
             */
            next?: number | null;
        };
        Cause: {
            /** @enum {string} */
            kind: "first";
        } | {
            /** @enum {string} */
            kind: "change";
        } | {
            /** @enum {string} */
            kind: "undo";
            of: number[];
            path?: components["schemas"]["WirePath"] | null;
        } | {
            /** @enum {string} */
            kind: "redo";
            /** Format: int64 */
            of: number;
        } | {
            /** @enum {string} */
            kind: "restore";
            /** Format: int64 */
            to: number;
        };
        Change: {
            directory?: boolean;
            from?: components["schemas"]["WirePath"] | null;
            kind: components["schemas"]["ChangeKind"];
            /** @description Absolute, after the change. */
            path: components["schemas"]["WirePath"];
        };
        /** @description What is absent stays. A new mode holds at once, everything else from the next turn on. */
        ChangeConversation: {
            /** @default null */
            mode: components["schemas"]["ConversationMode"] | null;
            /** @default null */
            model: string | null;
            /** @default null */
            role: string | null;
            /** @default null */
            title: string | null;
        };
        /** @description What is absent stays as it is. */
        ChangeFact: {
            tags?: string[] | null;
            text?: string | null;
        };
        /** @enum {string} */
        ChangeKind: "create" | "modify" | "move" | "delete";
        /** @description One checkpoint, or the difference of two. */
        Changes: {
            changes: components["schemas"]["FileChange"][];
            checkpoint?: components["schemas"]["CheckpointInfo"] | null;
            /**
             * Format: int64
             * @description How many there are; `changes` may hold only the first.
             */
            total: number;
        };
        CheckpointInfo: {
            /** Format: int64 */
            added: number;
            /** @description Who was at work; empty when nobody knows. */
            authors: components["schemas"]["Author"][];
            cause: components["schemas"]["Cause"];
            /** Format: int64 */
            changed: number;
            /** Format: int64 */
            id: number;
            label?: string | null;
            moved?: components["schemas"]["Moved"][];
            remarks?: components["schemas"]["Remark"][];
            /** Format: int64 */
            removed: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             */
            time: number;
            /** @description An undo has taken it back. */
            undone?: boolean;
        };
        /** @description Newest first. */
        CheckpointPage: {
            checkpoints: components["schemas"]["CheckpointInfo"][];
            /**
             * Format: int64
             * @description `before` of the next page.
             */
            next?: number | null;
        };
        Chmod: {
            /** Format: int32 */
            mode: number;
            path: components["schemas"]["WirePath"];
        };
        /** @enum {string} */
        Choice: "ask" | "keep" | "overwrite";
        CitationEdge: {
            cited: string;
            citing: string;
        };
        CitationGraph: {
            edges: components["schemas"]["CitationEdge"][];
        };
        CitationInfo: {
            /** @description `[^1a2b3c4d-3-5]`, for the text. */
            mark: string;
            /** @description The footnote that belongs to it. */
            note: string;
            /** @description The edition and the lines. */
            place: string;
            quote?: string | null;
            reference: string;
        };
        CiteRequest: {
            /** @description `nacre:edition:HASH`, with `#L3-L5` for lines. */
            edition: string;
            /** @description Must stand there; only white space may differ. */
            quote?: string | null;
        };
        /** @description Text messages from the client. */
        ClientControl: (components["schemas"]["ExecRequest"] & {
            /** @enum {string} */
            type: "start";
        }) | {
            /** @enum {string} */
            type: "stdin_eof";
        } | (components["schemas"]["TtySize"] & {
            /** @enum {string} */
            type: "resize";
        }) | {
            signal: string;
            /** @enum {string} */
            type: "signal";
        };
        /** @description A command as listings show it. */
        CommandInfo: {
            /** @description Clients attached now. */
            clients: number;
            /** @description As one line for people. */
            command: string;
            cwd: components["schemas"]["WirePath"];
            detached: boolean;
            /** Format: int64 */
            ended_at?: number | null;
            exit?: components["schemas"]["Exit"] | null;
            id: string;
            label?: string | null;
            /**
             * Format: int64
             * @description Bytes of output so far, on both streams.
             */
            output_bytes: number;
            /** Format: int32 */
            pid: number;
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            started_at: number;
            tty?: components["schemas"]["TtySize"] | null;
            user: string;
        };
        CommandList: {
            commands: components["schemas"]["CommandInfo"][];
        };
        /** @description What is wrong with a `nacre.toml`. */
        ConfigError: {
            /**
             * Format: int32
             * @description Counted from 1; absent when it is about the file as a whole.
             */
            line?: number | null;
            reason: string;
        };
        Conflict: {
            by?: components["schemas"]["CheckpointInfo"] | null;
            path: components["schemas"]["WirePath"];
            present?: components["schemas"]["FileVersion"] | null;
            /** @description `changed_later`, `changed_between`, `holds_later_files` or `parent_replaced`. */
            reason: string;
            target?: components["schemas"]["FileVersion"] | null;
        };
        /** @description Times are Unix milliseconds. */
        ConversationInfo: components["schemas"]["ConversationState"] & {
            /** Format: int64 */
            created_at: number;
            /**
             * Format: double
             * @description As far as it is known.
             */
            dollars?: number | null;
            id: string;
            /** Format: int64 */
            input_tokens: number;
            mode: components["schemas"]["ConversationMode"];
            /** @description `provider/model`; when absent, that of the configuration. */
            model?: string | null;
            /** Format: int64 */
            output_tokens: number;
            parent?: components["schemas"]["ForkedFrom"] | null;
            /** @description `dev` or `live`; when absent, dev if there is one. */
            role?: string | null;
            /**
             * Format: int64
             * @description The number of the last event.
             */
            seq: number;
            /**
             * Format: int64
             * @description How often the model was asked, up to the end of the last turn.
             */
            steps: number;
            title: string;
            /** Format: int64 */
            updated_at: number;
        };
        ConversationList: {
            /** @description The one that was used last comes first. */
            conversations: components["schemas"]["ConversationInfo"][];
        };
        /**
         * @description What the agent may do without asking.
         * @enum {string}
         */
        ConversationMode: "plan" | "ask" | "auto";
        ConversationState: {
            /** @enum {string} */
            state: "idle";
        } | {
            /** @enum {string} */
            state: "working";
        } | {
            /** @description What it would do. */
            about: string;
            /** @description The call it is about: what [`Approve`] names. */
            call: string;
            /** @enum {string} */
            state: "asking";
        };
        CopyProgress: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            elapsed_ms: number;
            /** Format: int64 */
            files: number;
        };
        /** @description How a copy went. */
        CopyReport: {
            /**
             * Format: int64
             * @default 0
             */
            bytes: number;
            /**
             * Format: int64
             * @description For how long `live` stood still; absent when it did not run, or could not be frozen.
             * @default null
             */
            frozen_ms: number | null;
            /**
             * @description The copy has the history too. Otherwise it begins its own.
             * @default false
             */
            history: boolean;
            /**
             * Format: int64
             * @description Sockets, pipes and devices, which mean nothing in a copy.
             * @default 0
             */
            left_out: number;
            /**
             * @description The first of them.
             * @default []
             */
            left_out_names: string[];
            /**
             * Format: int64
             * @description Files, links and directories of the copy.
             * @default 0
             */
            names: number;
            /**
             * Format: int64
             * @description How much of that takes no space of its own, because the filesystem shares it.
             * @default 0
             */
            shared_bytes: number;
            /**
             * Format: int64
             * @default 0
             */
            took_ms: number;
            /**
             * Format: int64
             * @description Names that still changed in the last look at a `live` that could not be frozen.
             * @default 0
             */
            unsettled: number;
        };
        CreateConversation: {
            /** @default null */
            mode: components["schemas"]["ConversationMode"] | null;
            /** @default null */
            model: string | null;
            /** @default null */
            role: string | null;
            /**
             * @description The beginning of the first message when absent.
             * @default null
             */
            title: string | null;
        };
        CreatePolicyToken: components["schemas"]["PolicyScope"] & {
            /**
             * Format: int64
             * @description How long it works; until it is revoked when absent.
             */
            expires_in_s?: number | null;
            /** @description What it is for. */
            name?: string;
        };
        CreateSandbox: {
            /** @default {} */
            limits: components["schemas"]["Limits"];
            /**
             * @description Lower case letters, digits and dashes; made up when absent.
             * @default null
             */
            name: string | null;
            /** @default null */
            rootfs: components["schemas"]["WirePath"] | null;
            /**
             * @description Start it at once.
             * @default false
             */
            start: boolean;
        };
        CreateToken: {
            /**
             * Format: int64
             * @description How long it works; for ever when absent.
             */
            expires_in_s?: number | null;
            /** @description What it is for. */
            name: string;
            scopes: components["schemas"]["Scope"][];
        };
        /** @description A content that cannot be read any more, and where it was used. */
        Damaged: {
            content: string;
            uses: components["schemas"]["Use"][];
            why: string;
        };
        /** @description One of `process`, `page`, `entry`, `modules`. */
        DesktopCheck: {
            /** @description What is wrong, for people. */
            detail?: string | null;
            name: string;
            ok: boolean;
        };
        /** @description Whether what a sandbox shows at `/` works, as of now. */
        DesktopHealth: {
            checks: components["schemas"]["DesktopCheck"][];
            mode: components["schemas"]["DesktopMode"];
            /** @description Every check is. */
            ok: boolean;
        };
        /**
         * @description Whose the page is.
         * @enum {string}
         */
        DesktopMode: "source" | "built" | "app" | "unknown";
        DevMade: {
            copy: components["schemas"]["CopyReport"];
            sandbox: components["schemas"]["SandboxInfo"];
        };
        DocumentInfo: {
            path: string;
            /** @description A sandbox by its name. */
            source: string;
            title?: string | null;
        };
        DocumentList: {
            documents: components["schemas"]["DocumentInfo"][];
            /** @description There are more; pass the last path as `after`. */
            more: boolean;
        };
        /** @description What is known of an edition without its content. */
        EditionInfo: {
            /** @description `nacre:edition:` and the hash of its manifest. */
            address: string;
            /** @description A DID, or `local` on a computer that nobody has claimed. */
            author: string;
            /** Format: int64 */
            bytes: number;
            /** @description Places in other editions. */
            citations: string[];
            /** @description BLAKE3 of the content. */
            content: string;
            /** @description `2026-11-17T18:30:00Z` */
            date: string;
            document: string;
            media_type: string;
            /** @description False when it had been published already, unchanged. */
            new?: boolean | null;
            /**
             * Format: int64
             * @description The how manieth publication of this computer it is.
             */
            number: number;
            previous?: string | null;
            title: string;
        };
        EditionList: {
            editions: components["schemas"]["EditionInfo"][];
            /**
             * Format: int64
             * @description Pass as `before` for the next page; absent on the last.
             */
            next?: number | null;
        };
        /** @description An edition and what surrounds it. */
        EditionView: {
            cited_by: string[];
            cites: string[];
            edition: components["schemas"]["EditionInfo"];
            /** @description What it cites, as a reader sees it. */
            references: string[];
            /** @description The content, if it is text. */
            text?: string | null;
        };
        /** @description A connection that is open. */
        EgressConnection: {
            address: string;
            host: string;
            /** Format: int32 */
            port: number;
            /**
             * Format: int64
             * @description Bytes to the sandbox.
             */
            received: number;
            /**
             * Format: int64
             * @description Bytes from the sandbox.
             */
            sent: number;
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            since: number;
        };
        /** @enum {string} */
        EgressEffect: "allow" | "deny";
        EgressLimits: {
            /** Format: int64 */
            connections: number;
            /** Format: int64 */
            connects_per_second: number;
        };
        EgressLog: {
            /**
             * Format: int64
             * @description Records that were not kept because the disk was too slow for them.
             */
            lost?: number;
            /**
             * Format: int64
             * @description Pass it as `before` for what is older.
             */
            next?: number | null;
            /** @description Newest first. */
            records: components["schemas"]["EgressRecord"][];
        };
        /**
         * @description What is open to a sandbox when no rule says otherwise.
         * @enum {string}
         */
        EgressMode: "open" | "allow-list" | "none";
        /** @description A connection that was made or asked for. */
        EgressRecord: {
            /** @description The address that was checked and connected to. */
            address?: string | null;
            /**
             * Format: int64
             * @description When it was asked for, in Unix milliseconds.
             */
            at: number;
            /**
             * Format: int64
             * @description So far, if it is open.
             */
            duration_ms: number;
            /** @description `*` with port 0 stands for whatever was asked for faster than the limit. */
            host: string;
            /** Format: int64 */
            id: number;
            /** Format: int32 */
            port: number;
            reason?: string | null;
            /**
             * Format: int64
             * @description Bytes to the sandbox.
             */
            received: number;
            /** @description Which run of an agent it was for, when that is known. */
            run?: string | null;
            /** @description What the sandbox was called then. */
            sandbox: string;
            sandbox_id: string;
            /**
             * Format: int64
             * @description Bytes from the sandbox.
             */
            sent: number;
            /**
             * Format: int64
             * @description How often the same was refused within a minute; this is the first time.
             */
            times?: number;
            verdict: components["schemas"]["EgressVerdict"];
        };
        EgressRule: {
            /** @description From `nacre.toml`, for every sandbox, and not to be removed here. */
            default?: boolean;
            effect: components["schemas"]["EgressEffect"];
            /** @description The name may lead to an address that is not on the public internet. A network always may. */
            private?: boolean;
            /** @description `example.com`, `*.example.com`, `10.1.0.0/16`, `[fd00::]/8`, each with `:443` or `:8000-8999`. */
            target: string;
        };
        /**
         * @description How a connection came to its end, or that it has not.
         * @enum {string}
         */
        EgressVerdict: "open" | "allowed" | "broken" | "cut" | "refused" | "failed" | "unknown";
        /** @description What a sandbox may reach, and what it has open. */
        EgressView: {
            /** @description The mode is the one of `nacre.toml`. */
            default_mode?: boolean;
            limits: components["schemas"]["EgressLimits"];
            mode: components["schemas"]["EgressMode"];
            /** @description Oldest first. */
            open: components["schemas"]["EgressConnection"][];
            rules: components["schemas"]["EgressRule"][];
            sandbox: string;
        };
        /** @description The body of an error response. */
        ErrorBody: {
            error: components["schemas"]["ApiError"];
        };
        /**
         * @description What went wrong, in terms a program can act on.
         * @enum {string}
         */
        ErrorKind: "not_found" | "permission" | "is_directory" | "not_directory" | "invalid_path" | "invalid_request" | "exists" | "conflict" | "no_space" | "too_large" | "unauthorized" | "incompatible" | "unavailable" | "unsupported" | "out_of_memory" | "unreachable" | "timed_out" | "too_many" | "internal";
        Event: {
            run: string;
            /** @enum {string} */
            type: "hello";
        } | {
            /** Format: int64 */
            directories: number;
            /** @enum {string} */
            type: "watching";
        } | {
            /** @enum {string} */
            type: "gap";
        } | {
            changes: components["schemas"]["Change"][];
            /** @enum {string} */
            type: "files";
        } | {
            /** @enum {string} */
            type: "files_lost";
        } | {
            process: components["schemas"]["ProcessInfo"];
            /** @enum {string} */
            type: "process";
        } | {
            name: string;
            /** @enum {string} */
            type: "process_gone";
        } | {
            error?: components["schemas"]["ConfigError"] | null;
            /** @enum {string} */
            type: "config";
        } | {
            checkpoint: components["schemas"]["CheckpointInfo"];
            /** @enum {string} */
            type: "checkpoint";
        } | {
            /** Format: int64 */
            checkpoint: number;
            processes: components["schemas"]["ProcessAfter"][];
            /** @enum {string} */
            type: "restored";
        } | {
            /** @enum {string} */
            type: "beat";
        } | {
            id: string;
            kind: string;
            /** Format: int64 */
            number: number;
            /** @enum {string} */
            type: "conversation";
        } | {
            /** @enum {string} */
            type: "unknown";
        };
        EventMessage: components["schemas"]["Event"] & {
            /**
             * Format: int64
             * @description What to resume after. Events count from 1 in each run of the supervisor; a message that
             *     is not an event itself carries the number of the one before.
             */
            seq: number;
        };
        Evidence: {
            /** @default null */
            content_type: string | null;
            /**
             * @description How the answer begins.
             * @default null
             */
            excerpt: string | null;
            /** @default  */
            problem: string;
            /**
             * Format: int32
             * @default null
             */
            status: number | null;
            /**
             * @description As the sandbox was asked for it.
             * @default
             */
            url: string;
        };
        /** @description What to run and how. */
        ExecRequest: {
            /**
             * @description Program and arguments. Exactly one of `argv` and `shell` is set.
             * @default []
             */
            argv: string[];
            /**
             * @description On whose behalf, such as a conversation: what it changes is put down to them as well.
             * @default []
             */
            by: components["schemas"]["Author"][];
            /** @default null */
            cwd: components["schemas"]["WirePath"] | null;
            /**
             * @description Keep running when the client that started it goes away.
             * @default false
             */
            detach: boolean;
            /**
             * @description Added to the default environment; an empty value is kept, `None` removes the variable.
             * @default {}
             */
            env: {
                [key: string]: string | null;
            };
            /**
             * @description A name people recognise in listings.
             * @default null
             */
            label: string | null;
            /**
             * @description A script for `/bin/sh -c`.
             * @default null
             */
            shell: string | null;
            /**
             * @description Leave standard input open for the client's bytes; otherwise it is empty.
             * @default false
             */
            stdin: boolean;
            /**
             * Format: int64
             * @description End the whole process group after this long.
             * @default null
             */
            timeout_ms: number | null;
            /** @default null */
            tty: components["schemas"]["TtySize"] | null;
            /**
             * @description A user name or number; defaults to the unprivileged owner of `/workspace`.
             * @default null
             */
            user: string | null;
        };
        /** @description How a command ended. */
        Exit: {
            /**
             * Format: int32
             * @description Set when the command exited by itself.
             */
            code?: number | null;
            /** @description The kernel ended something in this sandbox for want of memory while the command ran. */
            out_of_memory?: boolean;
            /** @description Set when a signal ended it: `KILL`, `SEGV`, ... */
            signal?: string | null;
            /** @description The supervisor ended it because its time was up. */
            timed_out?: boolean;
        };
        /** @description Something that was told, and by whom. */
        FactInfo: {
            /** Format: int64 */
            changed_at: number;
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            created_at: number;
            /** Format: int64 */
            id: number;
            /** @description `owner`, `page` for what a page told or reworded, or the conversation and the call that told it. */
            source: string;
            tags: string[];
            text: string;
        };
        FactList: {
            facts: components["schemas"]["FactInfo"][];
            /**
             * Format: int64
             * @description Pass as `before` for the next page; absent on the last.
             */
            next?: number | null;
        };
        FileChange: {
            /** @description Unified, when it was asked for and both sides are text. */
            diff?: string | null;
            from?: components["schemas"]["WirePath"] | null;
            new?: components["schemas"]["FileVersion"] | null;
            old?: components["schemas"]["FileVersion"] | null;
            /** @description Why there is no `diff`: `binary` or `too_large`. */
            omitted?: string | null;
            path: components["schemas"]["WirePath"];
        };
        /** @enum {string} */
        FileKind: "file" | "directory" | "symlink" | "fifo" | "socket" | "block_device" | "char_device" | "unknown";
        /** @description A name as it was. */
        FileVersion: {
            /** @description The BLAKE3 of a file's bytes, in hex; none when they were not kept. */
            content?: string | null;
            /** Format: int32 */
            gid: number;
            /** @description `file`, `directory`, `symlink` or `special`. */
            kind: string;
            /**
             * Format: int32
             * @description Permission bits.
             */
            mode: number;
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             */
            mtime: number;
            /** Format: int64 */
            size: number;
            target?: components["schemas"]["WirePath"] | null;
            /** Format: int32 */
            uid: number;
        };
        ForkConversation: {
            /**
             * Format: int64
             * @description The last event that the fork has; all of them when absent.
             * @default null
             */
            at: number | null;
            /** @default null */
            title: string | null;
        };
        /** @description Where a conversation was forked off. */
        ForkedFrom: {
            id: string;
            /**
             * Format: int64
             * @description The last event that both have.
             */
            seq: number;
        };
        GatewayStatus: {
            data_dir: components["schemas"]["WirePath"];
            driver: string;
            /** @description The DID of whose computer it is. */
            owner?: string | null;
            /** Format: int32 */
            pid: number;
            reduced: components["schemas"]["Reduction"][];
            sandboxes: components["schemas"]["SandboxInfo"][];
            /** Format: int64 */
            uptime_ms: number;
            /** @description Where a browser goes. */
            url: string;
            version: string;
        };
        /** @description `GET /supervisor/health` */
        Health: {
            /**
             * Format: int64
             * @description Handlers that panicked and were contained since the start.
             */
            contained_panics: number;
            status: components["schemas"]["HealthStatus"];
            /** Format: int64 */
            uptime_ms: number;
        };
        /** @enum {string} */
        HealthStatus: "ok" | "degraded";
        /** @description The owner's choices. Only the owner can reach them: nothing inside the sandbox can. */
        HistorySettings: {
            /**
             * @description Names that are neither recorded nor touched: `*` within a name, `**` across names.
             * @default []
             */
            exclude: string[];
            /**
             * Format: int64
             * @description Larger files are noted without their content.
             * @default null
             */
            largest_file_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            quota_bytes: number | null;
        };
        HistoryState: {
            /** @enum {string} */
            state: "starting";
        } | {
            /** @enum {string} */
            state: "recording";
        } | {
            /** @enum {string} */
            state: "refusing";
            why: string;
        } | {
            /** @enum {string} */
            state: "off";
            why: string;
        };
        /** @description How history is. */
        HistoryStatus: {
            /** Format: int64 */
            checkpoints: number;
            /**
             * Format: int64
             * @description The newest checkpoint; 0 before the first.
             */
            latest: number;
            /**
             * Format: int64
             * @description Files, directories and links in the recorded present.
             */
            names: number;
            /** Format: int64 */
            quota_bytes: number;
            /** @description An older store that could not be read was set aside under this name. */
            set_aside?: string | null;
            state: components["schemas"]["HistoryState"];
        };
        /** @description Where the space goes. */
        HistoryUsage: {
            /** Format: int64 */
            checkpoints: number;
            /** Format: int64 */
            disk_bytes: number;
            largest: components["schemas"]["PathBytes"][];
            /** Format: int64 */
            log_bytes: number;
            /** Format: int64 */
            names: number;
            /** Format: int64 */
            packs_bytes: number;
            /**
             * Format: int64
             * @description Uncompressed, of contents that only the past needs.
             */
            past_bytes: number;
            /**
             * Format: int64
             * @description Uncompressed.
             */
            present_bytes: number;
            /** Format: int64 */
            quota_bytes: number;
        };
        How: {
            /**
             * @description The same for single names, which may be directories.
             * @default {}
             */
            choices: {
                [key: string]: components["schemas"]["Choice"];
            };
            /**
             * @description Tell what would be done, and do nothing.
             * @default false
             */
            dry_run: boolean;
            /**
             * Format: int64
             * @description Refuse, with `conflict`, when the newest checkpoint is another one.
             * @default null
             */
            expected: number | null;
            /**
             * @description What to do about names that somebody changed later.
             * @default ask
             */
            on_conflict: components["schemas"]["Choice"];
            /** @default null */
            path: components["schemas"]["WirePath"] | null;
        };
        KnowledgeSource: {
            /** @description For a sandbox: whether its files have been looked through since it runs. */
            current?: boolean | null;
            /** Format: int64 */
            documents: number;
            /** @description A sandbox by its name, or `publications`. */
            name: string;
            /** @description Why some or all of it is missing. */
            problem?: string | null;
        };
        KnowledgeStatus: {
            /** Format: int64 */
            chunks: number;
            /** Format: int64 */
            documents: number;
            /** Format: int64 */
            editions: number;
            /** Format: int64 */
            facts: number;
            /** @description What makes the vectors. */
            model: string;
            sources: components["schemas"]["KnowledgeSource"][];
            /**
             * Format: int64
             * @description Chunks that are found by word only, until the model in use has seen them.
             */
            waiting: number;
        };
        LabelRequest: {
            /**
             * @description None takes the label off.
             * @default null
             */
            label: string | null;
        };
        /** @description What a sandbox may use; `None` is no limit. */
        Limits: {
            /**
             * Format: int64
             * @description Thousandths of a core: 1500 is one and a half.
             * @default null
             */
            cpu_millis: number | null;
            /**
             * Format: int64
             * @default null
             */
            disk_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            memory_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            pids: number | null;
        };
        Listing: {
            entries: components["schemas"]["Stat"][];
            next?: components["schemas"]["WirePath"] | null;
        };
        /** @description One line of a process's log. A jump in `seq` means that lines in between are no longer kept. */
        LogLine: {
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            at: number;
            /**
             * Format: int64
             * @description Counts from 1 for as long as the supervisor lives, across restarts of the process.
             */
            seq: number;
            stream: components["schemas"]["LogStream"];
            /** @description Without its end of line; bytes that are not UTF-8 are replaced. */
            text: string;
        };
        /** @enum {string} */
        LogStream: "stdout" | "stderr" | "supervisor";
        LostIn: {
            /** @description Which role it had then. */
            role: string;
            /** @description By id: nobody has its name any more. */
            sandbox: string;
        };
        MadePolicyToken: components["schemas"]["PolicyTokenInfo"] & {
            /** @description Shown this once. */
            token: string;
        };
        MadeToken: components["schemas"]["TokenInfo"] & {
            /** @description Shown this once. */
            token: string;
        };
        MalformedPlan: {
            path: string;
            reason: string;
        };
        Mkdir: {
            /** Format: int32 */
            mode?: number | null;
            /** @description Create missing parents and accept a directory that is already there. */
            parents?: boolean;
            path: components["schemas"]["WirePath"];
        };
        ModelChoice: {
            /** @description What a conversation that names none asks. */
            default?: boolean;
            /** @description `provider/model`. */
            model: string;
            /** @description Why it cannot be asked now. */
            problem?: string | null;
        };
        /** @description What a conversation may be told to ask. */
        ModelChoices: {
            /**
             * @description Those that are known by name, the default first.
             * @default []
             */
            models: components["schemas"]["ModelChoice"][];
            /**
             * @description Providers that take models besides those: `provider/` and whatever they call it.
             * @default []
             */
            providers: components["schemas"]["ProviderChoice"][];
        };
        Moved: {
            from: components["schemas"]["WirePath"];
            to: components["schemas"]["WirePath"];
        };
        /** @description What came of an undo, a redo or a restore. */
        Outcome: {
            /** @description From the present to what it became or would become. */
            changes: components["schemas"]["Changes"];
            checkpoint?: components["schemas"]["CheckpointInfo"] | null;
            /** @description Not empty: nothing was touched. */
            conflicts: components["schemas"]["Conflict"][];
            /** @description The checkpoints that were taken back. */
            of?: number[];
            remarks?: components["schemas"]["Remark"][];
        };
        PathBytes: {
            /** Format: int64 */
            bytes: number;
            path: components["schemas"]["WirePath"];
        };
        PlanInfo: {
            description: string;
            name: string;
            /** @description In the workspace. */
            path?: string | null;
            source: components["schemas"]["PlanSource"];
            steps: string[];
        };
        /** @description Ways to go about a task that the agent can adopt, with the steps of each. */
        PlanList: {
            /**
             * @description Files of the workspace that are no templates.
             * @default []
             */
            malformed: components["schemas"]["MalformedPlan"][];
            /**
             * @description Those of the workspace first.
             * @default []
             */
            plans: components["schemas"]["PlanInfo"][];
        };
        /** @enum {string} */
        PlanSource: "builtin" | "workspace";
        /** @description Whom a policy token is for and what it may do. What is empty or absent does not restrict. */
        PolicyScope: {
            /** @default null */
            conversation: string | null;
            /**
             * Format: double
             * @default null
             */
            dollars: number | null;
            /**
             * @description `*` stands for anything.
             * @default []
             */
            models: string[];
            /**
             * @description As `paths` of a provider, and only of what that allows.
             * @default []
             */
            paths: string[];
            /** @default [] */
            providers: string[];
            /**
             * Format: int32
             * @default null
             */
            requests_per_minute: number | null;
            /** @default null */
            run: string | null;
            /**
             * @description It works in this sandbox only, by id.
             * @default null
             */
            sandbox: string | null;
            /**
             * Format: int64
             * @description As long as it lives.
             * @default null
             */
            tokens: number | null;
        };
        /** @description A policy token, without what opens anything. Times are Unix milliseconds. */
        PolicyTokenInfo: components["schemas"]["PolicyScope"] & {
            /** @description Made for the commands of a sandbox, and ended with it. */
            automatic?: boolean;
            /** Format: int64 */
            created_at: number;
            /** Format: int64 */
            expires_at?: number | null;
            id: string;
            name: string;
            /** Format: double */
            used_dollars: number;
            /**
             * Format: int64
             * @description Reservations of calls under way are in it.
             */
            used_tokens: number;
        };
        PolicyTokenList: {
            /** @description Oldest first. */
            tokens: components["schemas"]["PolicyTokenInfo"][];
        };
        /** @description A socket that takes connections. */
        PortInfo: {
            /** @description Where it listens: `127.0.0.1`, or `0.0.0.0` and `::` for everywhere. */
            address: string;
            /** Format: int32 */
            port: number;
            process?: components["schemas"]["PortProcess"] | null;
        };
        PortList: {
            /** @description By number. */
            ports: components["schemas"]["PortInfo"][];
        };
        PortProcess: {
            /** @description As the kernel calls it: its first fifteen bytes. */
            name: string;
            /**
             * Format: int32
             * @description In the sandbox.
             */
            pid: number;
        };
        /** @description How a process of `nacre.toml` is after files were put back. */
        ProcessAfter: {
            name: string;
            ready: boolean;
            reason?: string | null;
        };
        ProcessInfo: {
            /** @description As one line for people. */
            command: string;
            directory: components["schemas"]["WirePath"];
            /**
             * Format: int64
             * @description How often in a row it ended without anybody asking for it: since somebody started it, or since it
             *     was well for a while. 0 while a start was asked for.
             */
            ends_in_a_row?: number;
            /**
             * Format: int32
             * @description The code a shell would give the last end: 128 and the signal's number for a signal.
             */
            exit_code?: number | null;
            /**
             * Format: int64
             * @description The number of the last line in its log; 0 before the first.
             */
            log_seq: number;
            name: string;
            /**
             * Format: int64
             * @description When the next try is due, as Unix time in milliseconds.
             */
            next_try?: number | null;
            /**
             * Format: int32
             * @description While it runs.
             */
            pid?: number | null;
            /** Format: int32 */
            port?: number | null;
            /** @description Why it is in that state, for people. */
            reason?: string | null;
            /** @description `false` when it is ready and no longer answers where it should; absent otherwise. */
            responding?: boolean | null;
            /**
             * Format: int64
             * @description How often it was started again without anybody asking for it.
             */
            restarts: number;
            /**
             * Format: int64
             * @description How often it was started at all.
             */
            run: number;
            /**
             * Format: int64
             * @description When it came to that state, as Unix time in milliseconds.
             */
            since: number;
            state: components["schemas"]["ProcessState"];
        };
        ProcessList: {
            config_error?: components["schemas"]["ConfigError"] | null;
            processes: components["schemas"]["ProcessInfo"][];
        };
        /** @enum {string} */
        ProcessState: "stopped" | "starting" | "ready" | "stopping" | "backing-off" | "crash-looping" | "failed" | "unknown";
        ProviderChoice: {
            name: string;
            /** @description Which ones, with `*` for anything. */
            patterns: string[];
        };
        /** @description Somebody who answers model calls, without the key. */
        ProviderInfo: {
            base_url: string;
            /** Format: double */
            dollars_per_day?: number | null;
            /** Format: double */
            dollars_today: number;
            /** @description Where the key comes from, in words. */
            key: string;
            /** @description `openai`, `anthropic`, `google`, `openrouter` or `openai-compatible`. */
            kind: string;
            /** @description None means every model. */
            models: string[];
            name: string;
            paths: string[];
            /** @description Why it cannot be used. */
            problem?: string | null;
            stopped: boolean;
            /** Format: int64 */
            tokens_per_day?: number | null;
            /** Format: int64 */
            tokens_today: number;
            /** Format: int64 */
            under_way: number;
        };
        ProviderList: {
            providers: components["schemas"]["ProviderInfo"][];
            /** @description All of them are. */
            stopped: boolean;
        };
        ProviderTested: {
            /** @description What came back, in words. */
            said: string;
            /** Format: int32 */
            status: number;
            /** Format: int64 */
            took_ms: number;
            works: boolean;
        };
        /** @description A file of a sandbox, or a text that is sent along. */
        PublishRequest: {
            /** @description By the ending of the path when absent. */
            media_type?: string | null;
            /** @description What it is an edition of: a path from the workspace. */
            path: string;
            /** @description Whose file it is, by name; `live` when absent. */
            sandbox?: string | null;
            /** @description Instead of the file's content. */
            text?: string | null;
            title: string;
        };
        /** @description An inclusive range of generations. */
        Range: {
            /** Format: int32 */
            newest: number;
            /** Format: int32 */
            oldest: number;
        };
        Recall: {
            /** @description Best first. */
            facts: components["schemas"]["RecalledFact"][];
            /** @description Why meaning was left out, if it was. */
            note?: string | null;
        };
        RecalledFact: components["schemas"]["FactInfo"] & {
            by_meaning: boolean;
            by_word: boolean;
            /** Format: double */
            score: number;
        };
        RedoRequest: components["schemas"]["How"];
        /** @description Something this machine cannot do fully, and how to change that. */
        Reduction: {
            /** @description The exact command, or the one thing to do. */
            remedy?: string | null;
            /** @description What is reduced: `uids`, `memory`, `cpu`, `pids`, `disk`, `pause`, ... */
            what: string;
            why: string;
        };
        /** @description Something about one name that its owner should know. */
        Remark: {
            message: string;
            path: components["schemas"]["WirePath"];
            /** @description `torn`, `too_large`, `unreadable`, `left_alone` or `displaced`. */
            what: string;
        };
        Remove: {
            /** @description Only this version; see [`Stat::etag`]. */
            if_match?: string | null;
            path: components["schemas"]["WirePath"];
            /** @description Remove a directory with what is in it. */
            recursive?: boolean;
        };
        /** @description Exactly one of `checkpoint` and `time`. */
        RestoreRequest: components["schemas"]["How"] & {
            /**
             * Format: int64
             * @default null
             */
            checkpoint: number | null;
            /**
             * Format: int64
             * @description Milliseconds since 1970.
             * @default null
             */
            time: number | null;
        };
        RolesStatus: {
            /**
             * @description What the checks found when they were last made.
             * @default []
             */
            checks: components["schemas"]["SwapCheck"][];
            /** @default null */
            copying: components["schemas"]["CopyProgress"] | null;
            /** @default null */
            dev: components["schemas"]["SandboxInfo"] | null;
            /** @default null */
            last_swap: components["schemas"]["SwapRecord"] | null;
            /** @default null */
            live: components["schemas"]["SandboxInfo"] | null;
        };
        /** @description One name below the workspace. */
        RunChange: {
            change: components["schemas"]["RunChangeKind"];
            /** @description Why it is not among the files that can be fetched. */
            left_out?: string | null;
            /**
             * Format: int64
             * @description Lines, where it is text.
             */
            lines_added?: number;
            /** Format: int64 */
            lines_removed?: number;
            path: components["schemas"]["WirePath"];
        };
        /** @enum {string} */
        RunChangeKind: "added" | "changed" | "removed";
        /** @description What a run did to the files. */
        RunChanges: {
            /** Format: int64 */
            added: number;
            /**
             * Format: int64
             * @description Of the files that can be fetched.
             */
            bytes: number;
            /** Format: int64 */
            changed: number;
            /** @description There are more than could be looked at, or the sandbox did not tell. */
            incomplete?: string | null;
            /** @description The first of them, by path. */
            paths: components["schemas"]["RunChange"][];
            /** Format: int64 */
            removed: number;
        };
        /**
         * @description How a run ended. Each has its exit code.
         * @enum {string}
         */
        RunEnd: "done" | "max_steps" | "time_out" | "budget" | "model" | "invalid" | "interrupted" | "agent" | "cancelled" | "failed";
        /** @description One line of the stream. */
        RunEvent: components["schemas"]["RunUpdate"] & {
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            at: number;
            /**
             * Format: int64
             * @description From 1, without a gap.
             */
            seq: number;
        };
        /** @description Times are Unix milliseconds. */
        RunInfo: {
            agent: string;
            changes?: components["schemas"]["RunChanges"] | null;
            /** Format: int64 */
            created_at: number;
            detached: boolean;
            /** Format: int64 */
            ended_at?: number | null;
            id: string;
            limits: components["schemas"]["RunLimits"];
            model?: string | null;
            outcome?: components["schemas"]["RunOutcome"] | null;
            /** @description The sandbox that it runs in or, when that was wanted, ran in. */
            sandbox?: string | null;
            /** Format: int64 */
            started_at?: number | null;
            state: components["schemas"]["RunState"];
            /** @description The beginning of the task. */
            title: string;
            used: components["schemas"]["RunUsage"];
        };
        RunLimits: {
            /**
             * Format: double
             * @description None is no limit of its own.
             */
            dollars?: number | null;
            /**
             * Format: int64
             * @description How often nacre's own agent asks the model. Other agents have their own ways.
             */
            max_steps: number;
            /** Format: int64 */
            timeout_ms: number;
            /**
             * Format: int64
             * @description None is no limit of its own.
             */
            tokens?: number | null;
        };
        RunList: {
            /**
             * Format: int64
             * @description How many run at once at most.
             */
            at_once: number;
            /** @description Newest first. */
            runs: components["schemas"]["RunInfo"][];
        };
        RunOutcome: {
            /** Format: int32 */
            exit_code: number;
            hint?: string | null;
            how: components["schemas"]["RunEnd"];
            /** @description What exactly, where there is more to say. */
            message?: string | null;
        };
        /** @enum {string} */
        RunState: "waiting" | "queued" | "starting" | "running" | "finishing" | "ended";
        RunUpdate: {
            /** Format: int64 */
            ahead: number;
            /** @enum {string} */
            type: "queued";
        } | {
            state: components["schemas"]["RunState"];
            /** @enum {string} */
            type: "state";
        } | {
            event: Record<string, never>;
            /** @enum {string} */
            type: "agent";
        } | {
            line: string;
            stream: components["schemas"]["Stream"];
            /** @enum {string} */
            type: "output";
        } | {
            /** @enum {string} */
            type: "usage";
            used: components["schemas"]["RunUsage"];
        } | {
            /** @enum {string} */
            type: "truncated";
        } | {
            run: components["schemas"]["RunInfo"];
            /** @enum {string} */
            type: "ended";
        } | {
            /** @enum {string} */
            type: "unknown";
        };
        /** @description What it used so far. Reservations of calls under way are in it. */
        RunUsage: {
            /**
             * Format: double
             * @default 0
             */
            dollars: number;
            /**
             * Format: int64
             * @description How often nacre's own agent asked the model.
             * @default 0
             */
            steps: number;
            /**
             * Format: int64
             * @default 0
             */
            tokens: number;
            /**
             * Format: int64
             * @default 0
             */
            tool_calls: number;
        };
        Said: {
            /** Format: int64 */
            at: number;
            /** @description What surrounds the first of the words, in one line. */
            excerpt: string;
            /** @description Of the conversation. */
            id: string;
            /**
             * Format: int64
             * @description Of the event.
             */
            seq: number;
        };
        /** @description Conversations in which something was said, with the last time that it was. */
        SaidList: {
            /** @description The one that was used last comes first. */
            found: components["schemas"]["Said"][];
            /** @description Not every conversation was looked at: there is too much in them, or enough was found. */
            incomplete: boolean;
        };
        SandboxInfo: {
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            created_at: number;
            driver: string;
            /** @description Why it failed, for people. */
            failure?: string | null;
            id: string;
            limits: components["schemas"]["Limits"];
            name: string;
            /** @description `live` or `dev` when a role points here. */
            role?: string | null;
            rootfs?: components["schemas"]["WirePath"] | null;
            /** @description The one-shot run that it was made for. */
            run?: string | null;
            state: components["schemas"]["SandboxState"];
            /** @description The supervisor's version while it runs. */
            supervisor?: string | null;
        };
        SandboxList: {
            sandboxes: components["schemas"]["SandboxInfo"][];
        };
        /** @enum {string} */
        SandboxState: "stopped" | "running" | "paused" | "failed";
        /**
         * @description What a token may do.
         * @enum {string}
         */
        Scope: "read" | "live" | "dev" | "admin";
        SearchAnswer: {
            /** @description Best first. */
            hits: components["schemas"]["SearchHit"][];
            /** @description Why meaning was left out, if it was. */
            note?: string | null;
        };
        SearchHit: {
            by_meaning: boolean;
            by_word: boolean;
            /** Format: int32 */
            first_line: number;
            /** @description The headings above it, outermost first. */
            headings: string;
            /** Format: int32 */
            last_line: number;
            /** @description From the workspace, or the address of an edition. */
            path: string;
            /** Format: double */
            score: number;
            snippet: string;
            /** @description A sandbox by its name, or `publications`. */
            source: string;
            title?: string | null;
        };
        SeedRequest: {
            /**
             * @description Put the source in the place of the one that is there.
             * @default false
             */
            replace: boolean;
        };
        Seeded: {
            seeded: boolean;
            /** @description Why it was not. */
            why?: string | null;
        };
        /** @description Refused with `unavailable` while a turn is under way. */
        SendMessage: {
            /** @default  */
            text: string;
        };
        /** @description It is written down, and its turn has begun. */
        Sent: {
            /**
             * Format: int64
             * @description The number of the event that holds it.
             */
            seq: number;
        };
        /** @description Text messages from the supervisor. */
        ServerControl: {
            id: string;
            /** Format: int32 */
            pid: number;
            /** @enum {string} */
            type: "started";
        } | {
            /** Format: int64 */
            bytes: number;
            /** @enum {string} */
            type: "gap";
        } | (components["schemas"]["Exit"] & {
            /** @enum {string} */
            type: "exit";
        }) | (components["schemas"]["ApiError"] & {
            /** @enum {string} */
            type: "error";
        });
        /** @description A browser that is signed in. Times are Unix milliseconds. */
        SessionInfo: {
            address?: string | null;
            /** @description What the browser calls itself. */
            agent?: string | null;
            /** Format: int64 */
            created_at: number;
            /** @description The one that asks. */
            current?: boolean;
            /**
             * Format: int64
             * @description When it ends, unless it is used before; never later than thirty days after it began.
             */
            expires_at: number;
            /** @description Names it, and opens nothing. */
            id: string;
            method: components["schemas"]["SignInMethod"];
            /**
             * Format: int64
             * @description When it last asked for something.
             */
            seen_at: number;
        };
        SessionList: {
            /** @description Last used first. */
            sessions: components["schemas"]["SessionInfo"][];
        };
        SetEgressMode: {
            mode?: components["schemas"]["EgressMode"] | null;
        };
        /** @description Lets somebody make a computer theirs that nobody owns. */
        SetupCode: {
            code: string;
            /** Format: int64 */
            expires_in_s: number;
            /** @description The page to type it into. */
            url: string;
        };
        Shutdown: {
            /**
             * @description Stop the sandboxes too; otherwise they run on and the next gateway finds them.
             * @default false
             */
            stop_sandboxes: boolean;
        };
        SignInLink: {
            /** Format: int64 */
            expires_in_s: number;
            url: string;
        };
        /**
         * @description How somebody signed in.
         * @enum {string}
         */
        SignInMethod: "link" | "account" | "recovery_code" | "passkey" | "unknown";
        SignalRequest: {
            signal: string;
        };
        /** @description What is to be done, and within which limits. What is absent is as the configuration says. */
        StartRun: {
            /**
             * @description `nacre`, `codex`, `claude`, `opencode`, or a command that is given the path of the task.
             * @default null
             */
            agent: string | null;
            /**
             * @description Goes on when nobody follows it.
             * @default false
             */
            detach: boolean;
            /**
             * Format: double
             * @description What its model calls may cost; 0 is no limit of its own.
             * @default null
             */
            dollars: number | null;
            /**
             * @description Files follow, with `PUT .../input`; it begins when they are there.
             * @default false
             */
            input: boolean;
            /**
             * @description The sandbox stays when it is over, and is one like any other from then on.
             * @default false
             */
            keep: boolean;
            /**
             * Format: int64
             * @default null
             */
            max_steps: number | null;
            /**
             * @description `provider/model`.
             * @default null
             */
            model: string | null;
            /**
             * @description The task.
             * @default
             */
            spec: string;
            /**
             * Format: int64
             * @default null
             */
            timeout_ms: number | null;
            /**
             * Format: int64
             * @description How many tokens its model calls may use, in and out; 0 is no limit of its own.
             * @default null
             */
            tokens: number | null;
        };
        Stat: {
            /** @description Changes whenever content or metadata does; what `If-Match` takes. */
            etag: string;
            /** Format: int32 */
            gid: number;
            kind: components["schemas"]["FileKind"];
            /** Format: int64 */
            links: number;
            /**
             * Format: int32
             * @description Permission bits, `0o7777`.
             */
            mode: number;
            /**
             * Format: int64
             * @description Nanoseconds since 1970.
             */
            modified_ns: number;
            /** @description The full path for `stat`, the bare name in a listing. */
            path: components["schemas"]["WirePath"];
            /** Format: int64 */
            size: number;
            target?: components["schemas"]["WirePath"] | null;
            /** Format: int32 */
            uid: number;
        };
        /** @description What a whole sandbox uses; a field the kernel does not offer is absent. */
        Stats: {
            /**
             * Format: int64
             * @default null
             */
            cpu_usage_us: number | null;
            /**
             * Format: int64
             * @default null
             */
            disk_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            memory_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            memory_limit_bytes: number | null;
            /**
             * Format: int64
             * @default null
             */
            memory_peak_bytes: number | null;
            /**
             * Format: int64
             * @description Times the kernel ended a process for want of memory.
             * @default null
             */
            oom_kills: number | null;
            /**
             * Format: int64
             * @default null
             */
            pids: number | null;
        };
        /**
         * @description The first byte of a binary message from the supervisor.
         * @enum {string}
         */
        Stream: "stdout" | "stderr";
        /** @description `GET /supervisor/stats`: what the supervisor itself uses. The driver reports the whole sandbox. */
        SupervisorStats: {
            /** Format: int64 */
            commands_running: number;
            /**
             * Format: int64
             * @description Free and total bytes of the filesystem that holds `/workspace`.
             */
            disk_free_bytes: number;
            /** Format: int64 */
            disk_total_bytes: number;
            /** Format: int64 */
            open_fds: number;
            /**
             * Format: int64
             * @description Processes in the sandbox, the supervisor included.
             */
            processes: number;
            /** Format: int64 */
            rss_bytes: number;
            /** Format: int64 */
            threads: number;
        };
        /** @description One thing that must hold before a sandbox becomes live. */
        SwapCheck: {
            /** @description In a sentence, for people. */
            detail: string;
            /** @description What was asked for and what came, where that failed. */
            evidence?: components["schemas"]["Evidence"][];
            /** @description `process`, `runtime`, `websocket`, `page` or `assets`. */
            name: string;
            ok: boolean;
        };
        /** @enum {string} */
        SwapKind: "swap" | "rollback" | "auto_rollback";
        /** @description A change of roles that happened. */
        SwapRecord: {
            after: string;
            /**
             * Format: int64
             * @description Unix time in milliseconds.
             */
            at: number;
            /** @description Ids: what was live before, and what is since. */
            before: string;
            kind: components["schemas"]["SwapKind"];
            /** @description Why, when nobody asked for it. */
            reason?: string | null;
            /** @description What watching it came to. */
            verdict?: string | null;
            /**
             * Format: int64
             * @description While it is watched.
             */
            watched_until?: number | null;
        };
        /** @description The body of the 409 to a swap that a check refuses. */
        SwapRefused: {
            checks: components["schemas"]["SwapCheck"][];
            error: components["schemas"]["ApiError"];
        };
        SwapRequest: {
            /**
             * @description Roll back even then.
             * @default false
             */
            force: boolean;
            /**
             * @description Back to what was live before the last swap. Checks are made and shown; only one that finds
             *     nothing there to answer refuses it.
             * @default false
             */
            rollback: boolean;
        };
        /** @description The last line of `GET /admin/sandboxes/swap/checks`. A stream that ends without one broke off. */
        SwapVerdict: {
            /** @description Whether a swap would go through. */
            ok: boolean;
            /** @description In a sentence, for people. */
            verdict: string;
        };
        Swapped: {
            checks: components["schemas"]["SwapCheck"][];
            dev: components["schemas"]["SandboxInfo"];
            /**
             * Format: int64
             * @description From the same moment until a power cut could not take it back. Absent when the disk did not confirm
             *     that: both have moved, and it may not last.
             */
            durable_in_us?: number | null;
            live: components["schemas"]["SandboxInfo"];
            /**
             * Format: int64
             * @description From the moment the pointers began to move until both had.
             */
            moved_in_us: number;
            /**
             * Format: int64
             * @description Unix time in milliseconds until which it may be taken back by itself.
             */
            watched_until?: number | null;
        };
        /** @description Which provider; all of them when absent. */
        Switch: {
            provider?: string | null;
        };
        Switched: {
            /**
             * Format: int64
             * @description Calls that were under way and were ended.
             */
            ended: number;
            stopped: boolean;
        };
        Symlink: {
            path: components["schemas"]["WirePath"];
            target: components["schemas"]["WirePath"];
        };
        TestProvider: {
            /** @description Asked for one word; without one, the list of models is asked for. */
            model?: string | null;
        };
        /** @description A token for programs, without what opens anything. */
        TokenInfo: {
            /** Format: int64 */
            created_at: number;
            /** Format: int64 */
            expires_at?: number | null;
            id: string;
            name: string;
            scopes: components["schemas"]["Scope"][];
            /** Format: int64 */
            used_at?: number | null;
        };
        TokenList: {
            tokens: components["schemas"]["TokenInfo"][];
        };
        /** @description Body of `move` and `copy`. */
        Transfer: {
            from: components["schemas"]["WirePath"];
            /** @description Replace a file that is in the way; without it that is a conflict. */
            overwrite?: boolean;
            to: components["schemas"]["WirePath"];
        };
        TtySize: {
            /** Format: int32 */
            cols: number;
            /** Format: int32 */
            rows: number;
        };
        /** @description What to take back: one step, one turn, or all that the conversation changed when neither is named. */
        UndoConversation: components["schemas"]["How"] & {
            /**
             * Format: int64
             * @description The number of a tool call's event.
             * @default null
             */
            step: number | null;
            /**
             * Format: int64
             * @description The number of any event of the turn.
             * @default null
             */
            turn: number | null;
        };
        /** @description What to take back. Exactly one of `last`, `checkpoints` and `by`; `last: 1` when there is none. */
        UndoRequest: components["schemas"]["How"] & {
            /** @default null */
            by: components["schemas"]["By"] | null;
            /** @default [] */
            checkpoints: number[];
            /**
             * Format: int64
             * @default null
             */
            last: number | null;
        };
        UndoneIn: {
            outcome: components["schemas"]["Outcome"];
            /** @description By name. */
            sandbox: string;
        };
        /** @description With conflicts in any of them, nothing was touched in any. */
        UndoneList: {
            /** @description Sandboxes that are gone: what was done in them went with them. */
            lost?: components["schemas"]["LostIn"][];
            sandboxes: components["schemas"]["UndoneIn"][];
        };
        /** @description What an unpacked archive came to. */
        Unpacked: {
            /** Format: int64 */
            bytes: number;
            /** Format: int64 */
            entries: number;
        };
        /**
         * @description By what usage is put together.
         * @enum {string}
         */
        UsageBy: "day" | "model" | "run" | "conversation" | "sandbox" | "provider" | "token";
        UsageReport: {
            by: components["schemas"]["UsageBy"];
            rows: components["schemas"]["UsageRow"][];
            /**
             * Format: int64
             * @description Unix milliseconds.
             */
            since: number;
            total: components["schemas"]["UsageRow"];
        };
        /** @description What was used. Of a call whose end nobody saw, the reservation counts. */
        UsageRow: {
            /** Format: int64 */
            cached_tokens: number;
            /** Format: int64 */
            calls: number;
            /** Format: double */
            dollars: number;
            /**
             * Format: int64
             * @description Of these, calls of which only the reservation is known.
             */
            estimated: number;
            /** Format: int64 */
            input_tokens: number;
            /** @description The day (UTC), the model, the run, ...; empty when a call had none. */
            key: string;
            /** Format: int64 */
            output_tokens: number;
        };
        Use: {
            /**
             * Format: int64
             * @description The checkpoint that recorded it.
             */
            checkpoint: number;
            path: components["schemas"]["WirePath"];
        };
        /** @description What a check of the whole store found. */
        Verified: {
            /** Format: int64 */
            contents: number;
            damaged: components["schemas"]["Damaged"][];
        };
        VerifyReport: {
            /** Format: int64 */
            editions: number;
            /** @description Follows from all of them in order. Written down elsewhere, it tells later whether any is gone. */
            head: string;
            /** @description What is wrong; empty when all is as it was published. */
            problems: string[];
        };
        /** @description `GET /supervisor/version` */
        Version: {
            protocol: components["schemas"]["Range"];
            /** @description Paths that it passes up to its host. */
            relays?: string[];
            version: string;
        };
        WatchMessage: {
            /** Format: int64 */
            directories: number;
            /** @enum {string} */
            type: "ready";
        } | {
            changes: components["schemas"]["Change"][];
            /** @enum {string} */
            type: "changes";
        } | {
            /** Format: int64 */
            lost: number;
            /**
             * @description This client was too slow and missed changes. Everything that exists follows as
             *     `create`, and then `ready`; what is not among it is gone.
             */
            resync?: boolean;
            /** @enum {string} */
            type: "overflow";
        } | (components["schemas"]["ApiError"] & {
            /** @enum {string} */
            type: "error";
        });
        /** @description A path; base64 when it is not UTF-8. */
        WirePath: string | {
            base64: string;
        };
    };
    responses: {
        /** @description It was not done; the status fits the kind of the error. */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
