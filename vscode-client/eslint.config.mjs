// SPDX-License-Identifier: Apache-2.0
import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist/", "node_modules/", "shots/"] },
  js.configs.recommended,
  {
    files: ["src/**/*.ts", "test/**/*.ts", "page/**/*.ts"],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "no-console": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      // VS Code's own objects satisfy its interfaces by shape.
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
      "max-lines": ["error", 220],
      complexity: ["error", 14],
    },
  },
  { files: ["src/generated/*.ts"], rules: { "max-lines": "off" } },
  {
    // node:test returns promises that the runner itself awaits.
    files: ["test/**/*.ts"],
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
  {
    files: ["**/*.mjs", "**/*.cjs"],
    languageOptions: {
      globals: {
        process: "readonly",
        console: "readonly",
        fetch: "readonly",
        setTimeout: "readonly",
        clearTimeout: "readonly",
        performance: "readonly",
        URL: "readonly",
        URLSearchParams: "readonly",
        require: "readonly",
        exports: "writable",
      },
    },
  },
);
