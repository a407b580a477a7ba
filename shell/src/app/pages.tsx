// Every page of the desktop: its address, its name, its key and what shows it. Pages load on demand.

import { lazy, type ComponentType } from "react";
import { Chat } from "../pages/chat/chat";
import type { IconName } from "../ui/icons";

export interface Page {
  id: string;
  name: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  /** In the bar at the bottom of a narrow screen. */
  first?: boolean;
  show: ComponentType<{ rest: string; query: URLSearchParams }>;
}

export const PAGES: readonly Page[] = [
  { id: "chat", name: "Chat", icon: "chat", key: "c", first: true, show: Chat },
  { id: "files", name: "Files", icon: "files", key: "f", first: true, show: lazy(() => import("../pages/files/files")) },
  { id: "timeline", name: "Timeline", icon: "timeline", key: "t", first: true, show: lazy(() => import("../pages/timeline/timeline")) },
  { id: "terminal", name: "Terminal", icon: "terminal", key: "s", first: true, show: lazy(() => import("../pages/terminal/terminal")) },
  { id: "roles", name: "Live and dev", icon: "roles", key: "r", show: lazy(() => import("../pages/roles/roles")) },
  { id: "runs", name: "Runs", icon: "runs", key: "u", show: lazy(() => import("../pages/runs/runs")) },
  { id: "usage", name: "Spending", icon: "usage", key: "m", show: lazy(() => import("../pages/usage/usage")) },
  { id: "network", name: "Network", icon: "network", key: "n", show: lazy(() => import("../pages/network/network")) },
  { id: "settings", name: "Settings", icon: "settings", key: ",", show: lazy(() => import("../pages/settings/settings")) },
];

export const pageOf = (id: string): Page => PAGES.find((page) => page.id === id) ?? PAGES[0]!;
