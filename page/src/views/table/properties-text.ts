// Properties as lines of text, `name = value`; a name without a prefix is one of Lakewright's.

const PREFIX = 'lakewright.';

export function parseProperties(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const at = line.indexOf('=');
    if (at < 1) throw new Error(`${line.trim()}: write name = value`);
    const name = line.slice(0, at).trim();
    found[name.includes('.') ? name : PREFIX + name] = line.slice(at + 1).trim();
  }
  return found;
}

export function formatProperties(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name} = ${value}`)
    .join('\n');
}
