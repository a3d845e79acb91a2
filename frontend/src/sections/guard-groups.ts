/** Guards put in order for reading: by compilation, what a user can act on first, and only those that a filter lets through. */
import type { Accident, GuardGroup } from "../data";

export interface GuardedCompilation {
  compilation: string;
  /** Groups on what the user's program holds. */
  own: GuardGroup[];
  /** Groups that no user can act on. */
  noise: GuardGroup[];
}

/** The groups of every compilation, in the order the compilations appear in. */
export function byCompilation(groups: GuardGroup[], order: string[]): GuardedCompilation[] {
  const found = new Map<string, GuardedCompilation>(order.map((id) => [id, { compilation: id, own: [], noise: [] }]));
  for (const group of groups) {
    let entry = found.get(group.compilation);
    if (!entry) found.set(group.compilation, (entry = { compilation: group.compilation, own: [], noise: [] }));
    (group.noise ? entry.noise : entry.own).push(group);
  }
  return [...found.values()].filter((entry) => entry.own.length + entry.noise.length > 0);
}

/** Whether every word of a filter occurs in what a group says; upper and lower case are the same. */
export function matches(group: GuardGroup, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const text = [group.compilation, group.variable, ...group.conditions.flat()].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Accidents of one variable in several compilations, which are one thing to do: its values, and where it was seen. */
export interface AccidentGroup {
  variable: string;
  values: string[];
  compilations: string[];
  accident: Accident;
}

export function accidentGroups(accidents: Accident[]): AccidentGroup[] {
  const found = new Map<string, AccidentGroup>();
  for (const accident of accidents) {
    const key = JSON.stringify([accident.variable, accident.suspicion, accident.holder, accident.place]);
    const group = found.get(key);
    if (!group) {
      found.set(key, {
        variable: accident.variable,
        values: [accident.value],
        compilations: [accident.compilation],
        accident,
      });
      continue;
    }
    if (!group.values.includes(accident.value)) group.values.push(accident.value);
    if (!group.compilations.includes(accident.compilation)) group.compilations.push(accident.compilation);
  }
  return [...found.values()];
}
