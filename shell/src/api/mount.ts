// Where this desktop is mounted: `/` for live, `/dev/` for dev, wherever a proxy puts them.

function found(): URL {
  const path = location.pathname.replace(/supervisor\/desktop\/.*$/, "");
  return new URL(path.endsWith("/") ? path : `${path}/`, location.origin);
}

export const mount = found();

/** Which sandbox this page is of. */
export const role: "live" | "dev" = mount.pathname.endsWith("/dev/") ? "dev" : "live";

export type Query = Record<string, string | number | boolean | undefined>;

/** The address of a path of this sandbox, such as `/supervisor/health`. */
export const address = (path: string, query?: Query): URL => joined(mount, path, query);

/** The address of a path of the gateway, such as `/admin/sandboxes`. */
export const gateway = (path: string, query?: Query): URL => joined(role === "dev" ? new URL("..", mount) : mount, path, query);

function joined(root: URL, path: string, query: Query = {}): URL {
  const url = new URL(path.replace(/^\//, ""), root);
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  // A space as %20: a plus is a plus in the paths of files.
  const words = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  if (words.length > 0) url.search = [url.search.slice(1), ...words].filter(Boolean).join("&");
  return url;
}

/** The address of a WebSocket of this sandbox. */
export function socketAddress(path: string, query?: Query): URL {
  const url = address(path, query);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}
