// When a part of the desktop throws: the rest stays, and the supervisor's guard is told, which offers to
// take the change back that did it.

import { Component, type ReactNode } from "react";
import { Button } from "../ui/basics";
import { LinkButton } from "../ui/basics";
import { address } from "../api/mount";

export function tellGuard(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  dispatchEvent(new CustomEvent("nacre:trouble", { detail: { message, stack } }));
}

export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    tellGuard(error);
  }

  override componentDidMount(): void {
    // New code may be right again.
    import.meta.hot?.on("vite:afterUpdate", this.#again);
  }

  override componentWillUnmount(): void {
    import.meta.hot?.off("vite:afterUpdate", this.#again);
  }

  #again = () => {
    if (this.state.error) this.setState({ error: null });
  };

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div role="alert" className="column" style={{ padding: 24 }}>
        <h2>This part of the desktop broke</h2>
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
