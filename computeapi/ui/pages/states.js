// How states of servers are shown, and which actions they allow.

import { h } from './dom.js'

const GOOD = new Set(['ACTIVE'])
const BAD = new Set(['ERROR', 'UNKNOWN', 'DELETED', 'SOFT_DELETED'])
const RESTING = new Set(['SHUTOFF', 'PAUSED', 'SUSPENDED', 'SHELVED', 'SHELVED_OFFLOADED'])

export const taskOf = (server) => server['OS-EXT-STS:task_state'] ?? null
export const stateOf = (server) => server['OS-EXT-STS:vm_state'] ?? null

export function status(server) {
  const name = server.status
  const task = taskOf(server)
  const kind = task ? 'busy' : GOOD.has(name) ? 'good' : BAD.has(name) ? 'bad' : RESTING.has(name) ? 'rest' : 'busy'
  return h('span', { class: `status ${kind}` }, name, task && h('small', {}, task))
}

// Why a server does not allow an action; null if it does, as far as is known.
export function obstacle(requirements, server, action, isAdmin) {
  const those = requirements.actions[action]
  if (!those) return null
  const reasons = those.map((each) => against(requirements, server, each, isAdmin))
  return reasons.includes(null) ? null : reasons.at(-1)
}

function against({ statuses }, server, { states, tasks, lockable, launched, hosted }, isAdmin) {
  if (lockable && server.locked && !isAdmin) return 'It is locked.'
  if (states && !states.includes(stateOf(server))) return `Only when ${listed(states.map((state) => statuses[state] ?? state))}.`
  if (tasks && !tasks.includes(taskOf(server))) return taskOf(server) ? `Not while ${taskOf(server)}.` : `Only while ${listed(tasks)}.`
  if (hosted && server['OS-EXT-SRV-ATTR:host'] === null) return 'It has no host.'
  if (launched && server['OS-SRV-USG:launched_at'] === null) return 'It has never run.'
  return null
}

const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` : words[0])

// '3 min', '2 h', '5 d': how long ago something was.
export function ago(text, now = Date.now()) {
  const seconds = Math.max(0, (now - Date.parse(text.endsWith('Z') ? text : `${text}Z`)) / 1000)
  const [size, unit] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']].find(([each]) => seconds >= each) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit}`
}
