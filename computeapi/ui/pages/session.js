// The user's session and requests to the cloud. The cookie of the session cannot be read by scripts.

import { fill, h } from './dom.js'

export const OWN = { 'X-Computeapi-Page': '1' }

export class Session extends EventTarget {
  // Whether logging in is possible, and the user: { user, project, roles, cloud } or null.
  offered = false
  who = null

  async load() {
    this.take(await (await fetch('session', { headers: OWN })).json())
  }

  async logIn(user, password) {
    const answer = await fetch('session', {
      method: 'POST', headers: { ...OWN, 'Content-Type': 'application/json' }, body: JSON.stringify({ user, password }),
    })
    const document = await answer.json()
    if (!answer.ok) throw new Error(document.message)
    this.take(document)
  }

  async logOut() {
    this.take(await (await fetch('session', { method: 'DELETE', headers: OWN })).json())
  }

  take({ login, session }) {
    this.offered = login
    this.who = session
    this.dispatchEvent(new Event('change'))
  }

  // The response of the cloud or its control API: { status, phrase, headers, text, milliseconds }. body: text. look:
  // the page itself makes the request, so it is not in the journal of tests.
  async ask(path, { method = 'GET', version = null, body, at = 'cloud', look = false } = {}) {
    const headers = { ...OWN, Accept: 'application/json' }
    if (look) headers['X-Computeapi-Look'] = '1'
    if (version) headers['OpenStack-API-Version'] = `compute ${version}`
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const [begun, { who }] = [performance.now(), this]
    const answer = await fetch(at + path, { method, headers, body })
    const text = await answer.text()
    // If the cloud rejects the token, the session is over, unless another one has begun meanwhile.
    if (answer.status === 401 && who === this.who) this.take({ login: this.offered, session: null })
    return {
      status: answer.status, phrase: answer.statusText, headers: [...answer.headers], text, milliseconds: performance.now() - begun,
    }
  }
}

// The right end of the page's header: the user, or a button to log in.
export function corner(session) {
  const element = h('div', { class: 'corner' })
  const dialog = loginDialog(session)
  const show = () => {
    const { offered, who } = session
    fill(element, who
      ? [h('span', {}, who.user, h('span', { class: 'quiet' }, ` in ${who.project}`)),
        h('button', { type: 'button', onclick: () => session.logOut() }, 'Log out')]
      : offered && h('button', { type: 'button', onclick: () => dialog.showModal() }, 'Log in'), dialog)
  }
  session.addEventListener('change', show)
  show()
  return { element, open: () => dialog.showModal() }
}

function loginDialog(session) {
  const user = h('input', { name: 'user', value: 'admin', required: true, autocomplete: 'username', autocapitalize: 'none', spellcheck: 'false' })
  const password = h('input', { name: 'password', type: 'password', required: true, autocomplete: 'current-password' })
  const alert = h('p', { class: 'alert', role: 'alert' })
  const button = h('button', { type: 'submit', class: 'main' }, 'Log in')
  const dialog = h('dialog', { 'aria-labelledby': 'login', onclose: () => { form.reset(); fill(alert) } })
  const form = h('form', { onsubmit: (event) => { event.preventDefault(); submit() } },
    h('h2', { id: 'login' }, 'Log in'),
    h('p', { class: 'quiet' }, 'Use a user name and password of this cloud. ', h('code', {}, 'serve'), ' prints them and stores them in ', h('code', {}, 'clouds.yaml'), '.'),
    h('label', {}, 'User', user), h('label', {}, 'Password', password), alert,
    h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), button))
  dialog.append(form)
  async function submit() {
    button.disabled = true
    fill(alert)
    try {
      await session.logIn(user.value, password.value)
      dialog.close()
    } catch (error) {
      fill(alert, error.message)
      password.select()
    } finally {
      button.disabled = false
    }
  }
  return dialog
}
