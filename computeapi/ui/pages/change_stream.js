// A stream of which servers change, open while a view is subscribed. Without a stream, views poll.

import { OWN } from './session.js'

// When to give up a silent stream, and how long to wait before a new attempt, in milliseconds.
const SILENCE = 40_000
const RETRY = 10_000
const RETRY_AFTER_REFUSAL = 60_000

export class ChangeStream {
  // session: knows whether there is a stream for the user.
  constructor(session) {
    this.session = session
    this.subscribers = new Set()
    this.live = false
    document.addEventListener('visibilitychange', () => this.update())
    session.addEventListener('change', () => { this.close(); this.update() })
  }

  // onChange({ servers, more }) is called with the IDs of servers that changed; more: whether others changed, too.
  subscribe(onChange) {
    this.subscribers.add(onChange)
    this.update()
  }

  unsubscribe(onChange) {
    this.subscribers.delete(onChange)
    // Wait, because the next view may subscribe.
    setTimeout(() => this.update())
  }

  // Open or close the stream, as required: hidden windows must not use up the few connections of a browser.
  update() {
    const wanted = this.subscribers.size > 0 && !document.hidden && Boolean(this.session.who?.stream)
    if (!wanted) this.close()
    else if (!this.controller) this.open()
  }

  close() {
    this.controller?.abort()
    this.controller = null
    this.live = false
  }

  async open() {
    const controller = this.controller = new AbortController()
    let pause = RETRY
    try {
      const answer = await fetch('stream', { headers: OWN, signal: controller.signal })
      if (!answer.ok) pause = RETRY_AFTER_REFUSAL
      else await this.read(answer.body.pipeThrough(new TextDecoderStream()).getReader(), controller)
    } catch {
      // Any error leads to a new attempt.
    }
    controller.abort()
    if (controller !== this.controller) return
    this.live = false
    setTimeout(() => {
      if (controller !== this.controller) return
      this.controller = null
      this.update()
    }, pause)
  }

  async read(reader, controller) {
    let rest = ''
    for (;;) {
      const silent = setTimeout(() => controller.abort(), SILENCE)
      const { done, value } = await reader.read().finally(() => clearTimeout(silent))
      if (done || controller !== this.controller) return
      const events = (rest + value).split('\n\n')
      rest = events.pop()
      for (const event of events) this.receive(event)
    }
  }

  // The first event proves that no proxy buffers the stream; views look for earlier changes themselves.
  receive(event) {
    const lines = event.split('\n')
    if (lines.includes('event: end')) return
    const data = lines.find((line) => line.startsWith('data: '))
    if (!this.live) this.notify({ servers: [], more: true })
    this.live = true
    if (data) this.notify(JSON.parse(data.slice('data: '.length)))
  }

  notify(change) {
    for (const onChange of this.subscribers) onChange(change)
  }
}
