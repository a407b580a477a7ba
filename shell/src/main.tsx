import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Refusal } from "./api/client";
import { events } from "./api/events";
import { App } from "./app/app";
import { tellGuard } from "./app/boundary";
import "./theme.css";
import "./base.css";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // What was refused will be refused again; what was not answered may be.
      retry: (times, error) => times < 2 && !(error instanceof Refusal && error.status < 500),
    },
  },
});

events.start();

const root = document.getElementById("root");
if (!root) throw new Error("the page has no place for the desktop");
createRoot(root, { onUncaughtError: tellGuard }).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
