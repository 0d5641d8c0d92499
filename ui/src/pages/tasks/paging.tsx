import { ChevronLeft, ChevronRight, ChevronsLeft } from "lucide-react";
import { IconButton } from "@/components/button";
import { Select } from "@/components/field";

export const SIZES = ["20", "50", "100"] as const;
export type Size = (typeof SIZES)[number];

export interface PagingProps {
  label: string;
  onFirst: (() => void) | null;
  /** Null where there is no way there; `unknown` where it was not seen on the way here. */
  onPrevious: (() => void) | "unknown" | null;
  onNext: (() => void) | null;
  size: Size;
  onSize: (size: Size) => void;
}

const icon = "size-4";

export function Paging({ label, onFirst, onPrevious, onNext, size, onSize }: PagingProps) {
  const first = "This is the first page.";
  return (
    <nav aria-label={label} className="flex items-center gap-0.5">
      <Select
        aria-label="Tasks on a page"
        title="Tasks on a page"
        className="mr-1 w-17"
        value={size}
        onChange={({ target }) => onSize(target.value as Size)}
      >
        {SIZES.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </Select>
      <IconButton label="First page" reason={onFirst ? null : first} onClick={onFirst ?? undefined}>
        <ChevronsLeft className={icon} aria-hidden="true" />
      </IconButton>
      <IconButton
        label="Previous page"
        reason={
          onPrevious === "unknown" ? "The link led here directly. Go to the first page." : onPrevious ? null : first
        }
        onClick={typeof onPrevious === "function" ? onPrevious : undefined}
      >
        <ChevronLeft className={icon} aria-hidden="true" />
      </IconButton>
      <IconButton label="Next page" reason={onNext ? null : "This is the last page."} onClick={onNext ?? undefined}>
        <ChevronRight className={icon} aria-hidden="true" />
      </IconButton>
    </nav>
  );
}
