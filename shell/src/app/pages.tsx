// Every page of the desktop: its address, its name, its key and what shows it. Pages load on demand.

import type { ComponentType } from "react";
import { Chat } from "../pages/chat/chat";
import type { IconName } from "../ui/icons";
import { onDemand } from "./on-demand";

export interface Page {
  id: string;
  name: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  /** In the bar at the bottom of a narrow screen. */
  first?: boolean;
  show: ComponentType<Shown>;
}

interface Shown {
  rest: string;
  query: URLSearchParams;
}

export const PAGES: readonly Page[] = [
  { id: "chat", name: "Chat", icon: "chat", key: "c", first: true, show: Chat },
  { id: "files", name: "Files", icon: "files", key: "f", first: true, show: onDemand<Shown>(() => import("../pages/files/files")) },
  { id: "timeline", name: "Timeline", icon: "timeline", key: "t", first: true, show: onDemand<Shown>(() => import("../pages/timeline/timeline")) },
  { id: "terminal", name: "Terminal", icon: "terminal", key: "s", first: true, show: onDemand<Shown>(() => import("../pages/terminal/terminal")) },
  { id: "roles", name: "Live and dev", icon: "roles", key: "r", show: onDemand<Shown>(() => import("../pages/roles/roles")) },
  { id: "runs", name: "Runs", icon: "runs", key: "u", show: onDemand<Shown>(() => import("../pages/runs/runs")) },
  { id: "usage", name: "Spending", icon: "usage", key: "m", show: onDemand<Shown>(() => import("../pages/usage/usage")) },
  { id: "network", name: "Network", icon: "network", key: "n", show: onDemand<Shown>(() => import("../pages/network/network")) },
  { id: "settings", name: "Settings", icon: "settings", key: ",", show: onDemand<Shown>(() => import("../pages/settings/settings")) },
];

export const pageOf = (id: string): Page => PAGES.find((page) => page.id === id) ?? PAGES[0]!;
