import { useQuery } from "@tanstack/react-query";
import { aboutQuery } from "@/api/queries";
import { SafeText } from "@/components/safe-text";

/** Which queue this is, so that nobody takes production for staging. */
export function EnvironmentBadge() {
  const { data: about } = useQuery(aboutQuery);
  if (!about) return null;
  return (
    <span className="flex min-w-0 items-center gap-2">
      {about.environment && (
        <span
          data-environment=""
          title="The environment of this server"
          className="max-w-40 truncate rounded-full border border-line-strong bg-accent-soft px-2 py-0.5 font-semibold text-accent text-xs"
        >
          <SafeText text={about.environment} max={60} />
        </span>
      )}
      <span className="hidden text-faint text-xs lg:inline">
        <SafeText text={about.engine} /> · {about.version}
      </span>
    </span>
  );
}
