// When a part of the desktop throws: the rest stays, and the supervisor's guard is told, which offers to
// take the change back that did it. It is told as well when all is drawn again.

import { Component, type ReactNode } from "react";
import { Button, LinkButton } from "../ui/basics";
import { address } from "../api/mount";
import { NotLoaded } from "./on-demand";

export function tellGuard(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  dispatchEvent(new CustomEvent("nacre:trouble", { detail: { message, stack } }));
}

/** The parts that the guard was told of. There is one message for all of them. */
const broken = new Set<object>();

function isWell(part: object): void {
  if (broken.delete(part) && broken.size === 0) dispatchEvent(new CustomEvent("nacre:well"));
}

export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };
  /** How often in a row its code could not be loaded. */
  #missed = 0;

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    // A line that fails once is no fault of what was changed last; one that goes on failing may be.
    if (error instanceof NotLoaded && ++this.#missed < 2) return;
    broken.add(this);
    tellGuard(error);
  }

  override componentDidUpdate(): void {
    if (!this.state.error) isWell(this);
  }

  override componentDidMount(): void {
    // New code may be right again, and so may the line.
    import.meta.hot?.on("vite:afterUpdate", this.#again);
    addEventListener("online", this.#online);
  }

  override componentWillUnmount(): void {
    import.meta.hot?.off("vite:afterUpdate", this.#again);
    removeEventListener("online", this.#online);
    this.#forget();
    isWell(this);
  }

  /** What could not be loaded is asked for again when it is shown the next time. */
  #forget(): void {
    if (this.state.error instanceof NotLoaded) this.state.error.forget();
  }

  #again = () => {
    this.#forget();
    if (this.state.error) this.setState({ error: null });
  };

  /** It was the line, so it counts from here. */
  #online = () => {
    if (!(this.state.error instanceof NotLoaded)) return;
    this.#missed = 0;
    this.#again();
  };

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div role="alert" className="column" style={{ padding: 24 }}>
        <h2>{error instanceof NotLoaded ? "This page could not be loaded" : "This part of the desktop broke"}</h2>
        <pre className="mono" style={{ whiteSpace: "pre-wrap", color: "var(--bad)" }}>
          {error.message}
        </pre>
        <div className="row wraps">
          <Button look="primary" onClick={this.#again}>
            Try again
          </Button>
          <LinkButton href={address("/supervisor/rescue").href}>Open the rescue page</LinkButton>
        </div>
      </div>
    );
  }
}
