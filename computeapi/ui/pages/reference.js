// The API at all versions, from the document that computeapi/ui/reference.py creates.

export class Reference {
  constructor(document) {
    this.document = document
    this.versions = document.versions.map(([name, story], number) => ({ name, story, number }))
    this.newest = this.versions.length - 1
    this.nodes = document.nodes
    this.operations = document.operations.map((facts, number) => new Operation(this, facts, number))
    this.byName = new Map(this.operations.map((operation) => [operation.name, operation]))
    this.groups = document.groups.map(([name, text], number) => ({
      name, text, operations: this.operations.filter((operation) => operation.group === number),
    }))
    this.policies = document.policies.map(([name, rule, text]) => ({ name, rule, text }))
    this.phrases = document.phrases
  }

  // The number of the version with this name; null if it is not offered.
  number(name) {
    const found = this.versions.findIndex((version) => version.name === name)
    return found < 0 ? null : found
  }

  name(number) {
    return this.versions[number].name
  }

  // The operation with this name in computeapi/kit/operations.py.
  recordedAs(name) {
    this.recorded ??= new Map(this.operations.map((operation) => [operation.name.replace(/ {(.*)}$/, (all, action) => (operation.action ? ` ${action}` : all)), operation]))
    return this.recorded.get(name)
  }

  // How many operations each version changed.
  get touched() {
    const counts = new Array(this.versions.length).fill(0)
    for (const { steps } of this.operations) for (const step of steps) counts[step.from] += 1
    counts[0] = 0
    return counts
  }
}

export class Operation {
  constructor(reference, facts, number) {
    Object.assign(this, { reference, number, ...facts })
    this.name = `${this.method} ${this.path}${this.action ? ` {${this.action}}` : ''}`
  }

  // The step at a version; null if the operation does not exist there.
  at(version) {
    const step = this.steps.findLast(({ from }) => from <= version)
    return step && 'statuses' in step ? step : null
  }

  // Whether the operation always answers with an error.
  static isGone(step) {
    return step.statuses[0] >= 400
  }

  touchedAt(version) {
    return version > 0 && this.steps.some(({ from }) => from === version)
  }

  // [[first, last], ...]: the versions whose step passes a test.
  spans(holds) {
    const spans = []
    this.steps.forEach((step, at) => {
      if (!('statuses' in step) || !holds(step)) return
      const last = (this.steps[at + 1]?.from ?? this.reference.versions.length) - 1
      const before = spans.at(-1)
      if (before && before[1] === step.from - 1) before[1] = last
      else spans.push([step.from, last])
    })
    return spans
  }

  get lifetime() {
    this.known ??= this.spans(() => true)
    return this.known
  }
}

// 'since 2.26', 'until 2.56', '2.32, since 2.42': spans within others, in words; '' if they are the same.
export function versionsInWords(reference, spans, within) {
  if (String(spans) === String(within)) return ''
  const [first, last] = [within[0][0], within.at(-1)[1]]
  return spans.map(([low, high]) => {
    if (low === high) return reference.name(low)
    if (low === first) return `until ${reference.name(high)}`
    if (high === last) return `since ${reference.name(low)}`
    return `${reference.name(low)}–${reference.name(high)}`
  }).join(', ')
}
