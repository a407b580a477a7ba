import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// The supervisor says where this instance is mounted and which port it has (nacre.toml, `per_mount`).
const base = process.env.BASE_PATH ?? "/";
const port = Number(process.env.PORT ?? 5173);

// The modules may be a link to those that every sandbox of the machine shares, which cannot be written.
const modules = join(import.meta.dirname, "node_modules");
const shared = existsSync(modules) ? realpathSync(modules) : modules;
const cacheDir = join(homedir(), ".cache", "nacre-shell", base.replaceAll("/", "_"));

/** Vite's watcher drops a change that follows another of the same file within 50 ms, and the page would stay old. */
function nothingMissed(): Plugin {
  const written = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return {
    name: "nothing-missed",
    configureServer({ watcher }) {
      watcher.on("change", (path) => {
        const seen = written(path);
        setTimeout(() => written(path) !== seen && watcher.emit("change", path), 120);
      });
    },
  };
}

export default defineConfig(({ command }) => ({
  base: command === "build" ? "./" : base,
  plugins: [react(), nothingMissed()],
  cacheDir: command === "build" ? undefined : cacheDir,
  server: {
    host: "127.0.0.1",
    port,
    strictPort: true,
    fs: { allow: [import.meta.dirname, shared, cacheDir] },
  },
  optimizeDeps: {
    // Found at the start and not when a page first asks for them, which would reload it.
    entries: ["src/main.tsx", "src/pages/**/*.tsx", "src/ui/**/*.tsx"],
  },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200,
  },
}));
