// Where this desktop is mounted: `/` for live, `/dev/` for dev, wherever a proxy puts them.

function found(): URL {
  const path = location.pathname.replace(/supervisor\/desktop\/.*$/, "");
  return new URL(path.endsWith("/") ? path : `${path}/`, location.origin);
}

export const mount = found();

/** Which sandbox this page is of. */
export const role: "live" | "dev" = mount.pathname.endsWith("/dev/") ? "dev" : "live";

/** The address of a path of this sandbox, such as `/supervisor/health`. */
export function address(path: string, query?: Record<string, string | number | boolean | undefined>): URL {
  const url = new URL(path.replace(/^\//, ""), mount);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

/** The address of a path of the gateway, such as `/admin/sandboxes`. */
export function gateway(path: string): URL {
  const root = role === "dev" ? new URL("..", mount) : mount;
  return new URL(path.replace(/^\//, ""), root);
}

/** The address of a WebSocket of this sandbox. */
export function socketAddress(path: string, query?: Record<string, string | number | boolean | undefined>): URL {
  const url = address(path, query);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}
