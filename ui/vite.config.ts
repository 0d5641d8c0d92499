import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` shows pages that change as they are edited, with the data of a server that runs elsewhere.
const server = process.env["TASKLIB_SERVER"] ?? "http://127.0.0.1:8700";
const proxied = { target: server, changeOrigin: true };

// What the real server writes into the page.
const baseInDevelopment = {
  name: "base-in-development",
  apply: "serve" as const,
  transformIndexHtml: () => [{ tag: "base", attrs: { href: "/" }, injectTo: "head-prepend" as const }],
};

// As small as it gets, beside each file: the server sends these to browsers that take them.
const compressed = {
  name: "compressed",
  apply: "build" as const,
  writeBundle: ({ dir = "" }: { dir?: string }, files: Record<string, unknown>) => {
    for (const name of Object.keys(files).filter((each) => /\.(js|css|svg)$/.test(each))) {
      writeFileSync(`${dir}/${name}.br`, brotliCompressSync(readFileSync(`${dir}/${name}`)));
    }
  },
};

// In one file: that is smaller than many, and stays in browsers when only our own code changes.
const EVERY_PAGE_NEEDS =
  /node_modules\/(react|react-dom|scheduler|@tanstack\/(?!react-table|table-core)[^/]+|@radix-ui\/[^/]+|@floating-ui\/[^/]+|openapi-fetch)\//;

export default defineConfig({
  plugins: [react(), tailwindcss(), baseInDevelopment, compressed],
  base: "./", // the server says where it is mounted with <base href>
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: "../src/tasklib/server/dashboard",
    emptyOutDir: true,
    assetsDir: "assets/app",
    manifest: "manifest.json",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    target: "es2022",
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", test: EVERY_PAGE_NEEDS }] } } },
  },
  server: { proxy: { "/api": proxied, "/login": proxied, "/assets": proxied } },
  test: { environment: "jsdom", setupFiles: ["src/testing/setup.ts"], include: ["src/**/*.test.{ts,tsx}"] },
});
