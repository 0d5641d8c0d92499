import type { ReactNode } from "react";
import { SafeText } from "@/components/safe-text";
import { usePageTitle } from "@/hooks/use-page-title";

export interface PageHeaderProps {
  title: string;
  /** Beside the title: a badge. */
  badge?: ReactNode;
  /** Below the title. */
  children?: ReactNode;
  /** Buttons at the right. */
  actions?: ReactNode;
}

/** The top of every page: its one h1, and the document's title. */
export function PageHeader({ title, badge, children, actions }: PageHeaderProps) {
  usePageTitle(title);
  return (
    <header className="mb-4 flex flex-wrap items-start justify-between gap-3">
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-2">
          <h1 className="min-w-0 break-words font-semibold text-lg leading-8">
            <SafeText text={title} max={200} />
          </h1>
          {badge}
        </div>
        {children && <div className="text-dim">{children}</div>}
      </div>
      {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  );
}
