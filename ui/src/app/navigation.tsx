import { Link } from "@tanstack/react-router";
import {
  CalendarClock,
  ChartColumn,
  ListChecks,
  type LucideIcon,
  ScrollText,
  Server,
  Shapes,
  Workflow,
} from "lucide-react";

interface Item {
  to: "/tasks" | "/stats" | "/workers" | "/types" | "/schedules" | "/flows" | "/audit";
  label: string;
  icon: LucideIcon;
}

const ITEMS: readonly Item[] = [
  { to: "/tasks", label: "Tasks", icon: ListChecks },
  { to: "/stats", label: "Stats", icon: ChartColumn },
  { to: "/workers", label: "Workers", icon: Server },
  { to: "/types", label: "Types", icon: Shapes },
  { to: "/schedules", label: "Schedules", icon: CalendarClock },
  { to: "/flows", label: "Flows", icon: Workflow },
  { to: "/audit", label: "Audit", icon: ScrollText },
];

/** Where there is less room, its icons alone. */
export function Sidebar() {
  return (
    <div className="sticky top-0 hidden h-screen flex-col border-r bg-surface px-2 py-3 md:flex lg:px-3">
      <div className="mb-4 flex h-6 items-center gap-2 px-2.5 font-semibold text-sm lg:px-2">
        <span
          className="grid size-5 place-items-center rounded-md bg-accent text-2xs text-on-accent"
          aria-hidden="true"
        >
          ✓
        </span>
        <span className="max-lg:sr-only">tasklib</span>
      </div>
      <nav aria-label="Pages">
        <ul className="space-y-0.5">
          {ITEMS.map(({ to, label, icon: Icon }) => (
            <li key={to}>
              <Link
                to={to}
                title={label}
                className="flex h-8 items-center gap-2.5 rounded-md px-3 text-dim lg:px-2 hover:bg-raised hover:text-text aria-[current=page]:bg-raised aria-[current=page]:font-medium aria-[current=page]:text-text"
              >
                <Icon className="size-4 shrink-0" aria-hidden="true" />
                <span className="max-lg:sr-only">{label}</span>
              </Link>
            </li>
          ))}
        </ul>
      </nav>
    </div>
  );
}

/** On phones, under the thumb. */
export function BottomNavigation() {
  return (
    <nav
      aria-label="Pages"
      className="fixed inset-x-0 bottom-0 z-30 border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      <ul className="flex overflow-x-auto">
        {ITEMS.map(({ to, label, icon: Icon }) => (
          <li key={to} className="min-w-13 flex-1">
            <Link
              to={to}
              className="flex h-14 flex-col items-center justify-center gap-0.5 text-2xs text-dim aria-[current=page]:font-semibold aria-[current=page]:text-accent"
            >
              <Icon className="size-5" aria-hidden="true" />
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
