// Bytes that come in pieces of any size, and are taken as they are needed.

export class Incoming {
  chunks = []
  available = 0
  waiting = null

  add(chunk) {
    this.chunks.push(chunk)
    this.available += chunk.length
    if (this.waiting && this.available >= this.waiting.count) {
      const { count, resolve } = this.waiting
      this.waiting = null
      resolve(this.taken(count))
    }
  }

  // So many, or a promise of them: one at a time.
  take(count) {
    if (this.available >= count) return this.taken(count)
    return new Promise((resolve) => (this.waiting = { count, resolve }))
  }

  taken(count) {
    const bytes = new Uint8Array(count)
    for (let filled = 0; filled < count;) {
      const [chunk] = this.chunks
      const part = chunk.subarray(0, count - filled)
      bytes.set(part, filled)
      filled += part.length
      if (part.length === chunk.length) this.chunks.shift()
      else this.chunks[0] = chunk.subarray(part.length)
    }
    this.available -= count
    return bytes
  }
}

export const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
export const text = (bytes) => new TextDecoder().decode(bytes)
