/** Names the fake engines that stand in for workers: the same wherever they do. */
export function embeddedNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `embedded-${index + 1}`);
}
