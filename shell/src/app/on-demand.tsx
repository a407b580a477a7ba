// Parts whose code is loaded when they are first shown. React keeps what became of a lazy component for
// good, and browsers keep what became of an import; a line that fails for a moment is worth neither.

import { lazy, type ComponentType } from "react";

/** The code of a part could not be fetched. */
export class NotLoaded extends Error {
  /** Lets it be asked for again. */
  readonly forget: () => void;

  constructor(cause: Error, forget: () => void) {
    super(cause.message, { cause });
    this.forget = forget;
  }
}

type Module<Props> = { default: ComponentType<Props> };

/** Before each further try, in milliseconds. */
export const PAUSES: readonly number[] = [300, 1000, 2500];

/** What browsers say of a script that they did not get; what throws while it runs says something else. */
const NOT_FETCHED = /dynamically imported module|importing a module script failed|unable to preload/i;
const isNotFetched = (error: unknown): error is TypeError => error instanceof Error && NOT_FETCHED.test(error.message);

/** Chromium and Firefox name the address, at which they do not ask a second time. */
export function elsewhere(message: string, now: number): string | null {
  const found = /https?:\/\/\S+/.exec(message)?.[0];
  if (!found) return null;
  const url = new URL(found);
  // `t` is Vite's own, which takes it off where a module speaks of itself: the address that failed.
  url.searchParams.delete("t");
  url.searchParams.set("again", String(now));
  return url.href;
}

/** Tries again a few times, each time later. */
export async function patiently<T>(load: () => Promise<T>, again: (address: string) => Promise<T>, pauses = PAUSES): Promise<T> {
  let [next, left] = [load, [...pauses]];
  for (;;) {
    try {
      return await next();
    } catch (error) {
      const pause = left.shift();
      if (pause === undefined || !isNotFetched(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
      const address = elsewhere(error.message, Date.now());
      next = address === null ? load : () => again(address);
    }
  }
}

/** A component by what imports it. */
export function onDemand<Props extends object>(load: () => Promise<Module<Props>>): ComponentType<Props> {
  const made = () => lazy(() => patiently(load, (address) => import(/* @vite-ignore */ address) as Promise<Module<Props>>).catch(refused));
  const forget = () => void (shown = made());
  const refused = (error: unknown): never => {
    throw isNotFetched(error) ? new NotLoaded(error, forget) : error;
  };
  let shown = made();
  return function OnDemand(props: Props) {
    const Shown = shown as ComponentType<Props>;
    return <Shown {...props} />;
  };
}
