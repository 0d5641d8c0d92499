import { useQuery } from "@tanstack/react-query";
import type { Session } from "@/api/model";
import { sessionQuery } from "@/api/queries";

/** Who is signed in and what that token may do. Until it is known, nothing. */
export function useSession(): { session: Session | null; mayOperate: boolean; maySubmit: boolean } {
  const { data } = useQuery(sessionQuery);
  const may = data?.may ?? [];
  return { session: data ?? null, mayOperate: may.includes("operate"), maySubmit: may.includes("submit") };
}
