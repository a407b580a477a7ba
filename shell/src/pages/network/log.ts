// The log of the way out, filtered by those who look at it.

import type { Of } from "../../api/client";

export type Entry = Of<"EgressRecord">;
export type Verdict = Of<"EgressVerdict">;
export type Wanted = "all" | "made" | "refused" | "failed";

/** Which verdicts each choice shows. */
const MEANS: { [wanted in Wanted]: readonly Verdict[] | null } = {
  all: null,
  made: ["open", "allowed", "broken", "cut"],
  refused: ["refused", "cut"],
  failed: ["failed", "broken"],
};

export const WORDS: { [verdict in Verdict]: { words: string; tone: "good" | "warn" | "bad" | "plain"; means: string } } = {
  open: { words: "Open", tone: "good", means: "It was made, and has not ended." },
  allowed: { words: "Allowed", tone: "good", means: "It was made, and both sides closed it." },
  broken: { words: "Broken off", tone: "warn", means: "It was made, and one side broke off." },
  cut: { words: "Cut", tone: "bad", means: "It was made, and a rule that changed ended it." },
  refused: { words: "Refused", tone: "bad", means: "A rule or a limit was against it." },
  failed: { words: "Failed", tone: "warn", means: "Nobody was against it, and it could not be made." },
  unknown: { words: "Unknown", tone: "plain", means: "" },
};

/** Those that fit; `host` is found in the host, the address and `host:port`. */
export function pick(records: readonly Entry[], wanted: Wanted, host: string): Entry[] {
  const verdicts = MEANS[wanted];
  const part = host.trim().toLowerCase();
  return records.filter((record) => {
    if (verdicts && !verdicts.includes(record.verdict)) return false;
    return part === "" || `${record.host}:${record.port} ${record.address ?? ""}`.toLowerCase().includes(part);
  });
}

/** How often it was refused within a minute, where that is more than once. */
export const often = ({ times = 1 }: Entry): string => (times > 1 ? `${times} times` : "");

export interface Port {
  port: number;
  address: string;
  process: string | null;
}

/** One line for each port, wherever it listens. */
export function portsOf(list: Of<"PortList">): Port[] {
  const found = new Map<number, Port>();
  for (const { port, address, process } of list.ports) {
    const known = found.get(port);
    const addresses = known ? `${known.address}, ${address}` : address;
    found.set(port, { port, address: addresses, process: known?.process ?? process?.name ?? null });
  }
  return [...found.values()];
}

const OURS: { [port: number]: string } = { 8002: "Models, of Nacre itself", 8003: "The way out, of Nacre itself" };
/** Where the device listens that programs without a proxy go out by. */
const DEVICE = /^198\.1[89]\./;

/** What Nacre itself listens for in every sandbox; there is no page to open. */
export const ours = ({ port, address }: Port): string | undefined => (DEVICE.test(address) ? OURS[8003] : OURS[port]);
