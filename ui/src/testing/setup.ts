import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// What jsdom lacks.
window.matchMedia ??= vi.fn().mockReturnValue({ matches: false, addEventListener: () => {} });

afterEach(cleanup);
