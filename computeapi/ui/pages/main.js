// The page: which view the address asks for.

import { APIView } from './api.js'
import { fill, h } from './dom.js'
import { Session, corner } from './session.js'

const main = document.getElementById('main')

function show(view) {
  view.show(view.read(new URLSearchParams(location.hash.split('?')[1])))
}

try {
  const session = new Session()
  const { element, open } = corner(session)
  document.querySelector('.top').append(element)
  const [view] = await Promise.all([APIView.load(session, open), session.load()])
  session.addEventListener('change', () => show(view))
  show(view)
  fill(main, view.element)
  addEventListener('hashchange', () => show(view))
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, select, textarea')) return
    event.preventDefault()
    view.query.focus()
  })
} catch (error) {
  fill(main, h('p', { class: 'waiting', role: 'alert' }, error.message))
  throw error
} finally {
  main.removeAttribute('aria-busy')
}
