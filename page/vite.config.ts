/// <reference types="vitest/config" />
// The content security policy allows no inline script, so nothing may be injected into index.html; addresses are
// relative, so that the page works behind a proxy's prefix.
import { defineConfig } from 'vite';

export default defineConfig({
  base: './',
  build: {
    assetsDir: 'page',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    chunkSizeWarningLimit: 300,
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  test: { include: ['tests/**/*.test.ts'], environment: 'node' },
});
