import { PageFrame } from "../../ui/page";

export function Chat(_: { rest: string; query: URLSearchParams; docked?: boolean }) {
  return <PageFrame title="Chat">{null}</PageFrame>;
}
