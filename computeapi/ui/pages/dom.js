// Creates elements without parsing any markup, which might contain text of other people.

const SVG = 'http://www.w3.org/2000/svg'

// An element with these properties (`class`, `data-` and `aria-` and other attributes, `on...` listeners) and children:
// nodes, texts, and lists of them; null, undefined and false are left out.
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children)
}

export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children)
}

export function fill(element, ...children) {
  element.replaceChildren(...flat(children))
  return element
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...flat(children))
  return element
}

const flat = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
