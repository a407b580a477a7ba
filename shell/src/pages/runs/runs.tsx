import { PageFrame } from "../../ui/page";

export default function Page() {
  return <PageFrame title="runs">{null}</PageFrame>;
}
