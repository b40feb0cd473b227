// How curves are told apart: by colour, and without colours by their dashes.
export const DASH_PATTERNS = ["", "7 3", "2 2", "9 3 2 3", "14 4", "5 2 1 2 1 2", "4 6"];

export function colourOf(place, count) {
  const names = ["--plus", "--minus", "--third", "--fourth", "--fifth", "--sixth", "--ink"];
  return `var(${count === 1 ? "--ink" : names[place % names.length]})`;
}
