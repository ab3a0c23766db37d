// A view that follows the cloud for as long as it is shown.

import { fill } from './dom.js'

// How often to look even if there is a stream of changes, because it does not cover everything that is shown.
const STREAM_INTERVAL = 15_000

export class Following {
  // A view has read(), an element `alert` for error messages, and concerns(change) if it is about servers. milliseconds:
  // the interval. rest: the minimum pause after a read, as a multiple of its duration.
  constructor(cloud, milliseconds, rest = 0) {
    Object.assign(this, { cloud, milliseconds, rest, next: 0, looked: 0 })
    this.onChange = (change) => this.concerns(change) && this.soon()
  }

  show() {
    this.look()
    this.follow()
  }

  // Begin to look again.
  look() {
    this.timer ??= setInterval(() => this.tick(), this.milliseconds)
    if (this.concerns) this.cloud.changes.subscribe(this.onChange)
  }

  hide() {
    clearInterval(this.timer)
    clearTimeout(this.waiting)
    this.timer = this.waiting = null
    this.cloud.changes.unsubscribe(this.onChange)
  }

  tick() {
    const streamed = this.concerns && this.cloud.changes.live
    if (this.due || !streamed || performance.now() > this.looked + STREAM_INTERVAL) this.follow()
  }

  async follow() {
    if (this.following || document.hidden || !this.cloud.session.who || performance.now() < this.next) return
    this.following = true
    this.due = false
    const begun = this.looked = performance.now()
    try {
      await this.read()
      if (this.failed) fill(this.alert)
      this.failed = false
    } catch (error) {
      this.fail(error)
      this.failed = true
    } finally {
      this.following = false
      this.next = performance.now() + this.rest * (performance.now() - begun)
    }
    if (this.due) this.soon()
  }

  // Something is new, which a read in progress may not have seen.
  soon() {
    this.due = true
    if (this.following || this.waiting) return
    const left = this.next - performance.now()
    if (left <= 0) this.follow()
    else this.waiting = setTimeout(() => { this.waiting = null; this.follow() }, left)
  }

  // The user has just changed something.
  followNow() {
    this.next = 0
    this.soon()
  }

  fail(error) {
    fill(this.alert, error.message)
  }

  // Replace the state of the cloud through the control API. The session ends, because tokens are part of the state.
  async controlAll(method, path) {
    this.hide()
    try {
      await this.cloud.sendControl(method, path)
      await this.cloud.session.logOut()
    } catch (error) {
      this.show()
      fill(this.alert, error.message)
    }
  }

  // Make a request to the control API; returns its response, or null if it failed.
  async control(method, path, document) {
    try {
      const answer = await this.cloud.sendControl(method, path, document)
      fill(this.alert)
      return answer ?? {}
    } catch (error) {
      fill(this.alert, error.message)
      return null
    } finally {
      this.followNow()
    }
  }
}
