/** Grey lines where text will be. */
export function Loading({ lines = 4, label = "Loading" }: { lines?: number; label?: string }) {
  return (
    <div role="status" className="space-y-3 p-4">
      <span className="sr-only">{label}</span>
      {Array.from({ length: lines }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <div key={at} className="h-4 motion-safe:animate-pulse rounded bg-raised" />
      ))}
    </div>
  );
}
