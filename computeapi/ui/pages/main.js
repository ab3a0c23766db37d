// The page, which shows the view in the address.

import { APIView } from './api.js'
import { Cloud } from './cloud.js'
import { fill, h } from './dom.js'
import { HostsView } from './hosts.js'
import { NetworksView } from './networks.js'
import { ProjectsView } from './projects.js'
import { ServerView } from './server.js'
import { ServersView } from './servers.js'
import { Session, corner } from './session.js'
import { TestsView } from './tests.js'

const main = document.getElementById('main')
const bar = document.querySelector('.top')

class Page {
  constructor(session, open, api, requirements) {
    Object.assign(this, { session, open, api, requirements, cloud: new Cloud(session, api.reference) })
    this.begin()
    this.links = [['api', 'The API', '#/api'], ['servers', 'Servers', '#/servers'], ['hosts', 'Hosts', '#/hosts'],
      ['networks', 'Networks', '#/networks'], ['projects', 'Projects', '#/projects'],
      ['tests', 'Tests', '#/tests']]
    this.nav = h('nav', { class: 'views', 'aria-label': 'Views' })
    this.door = h('div', { class: 'waiting' }, h('p', {}, 'Log in to see the contents of the cloud.'),
      h('button', { type: 'button', class: 'main', onclick: open }, 'Log in'))
  }

  // Create the views again for another user, who must not see what the previous one saw or typed. All but the first need
  // a login.
  begin() {
    const { api, cloud, requirements, session: { who } } = this
    const user = who && `${who.user} in ${who.project}`
    if (this.views && (!user || user === this.user)) return
    for (const each of Object.values(this.views ?? {})) each.hide()
    this.user = user
    api.forget()
    this.views = {
      api, servers: new ServersView(cloud), server: new ServerView(cloud, requirements), hosts: new HostsView(cloud),
      networks: new NetworksView(cloud, requirements), projects: new ProjectsView(cloud), tests: new TestsView(cloud),
    }
  }

  // Hosts are for users whose policy rules allow it, by default administrators; tests need the control API.
  isFor(name) {
    if (name === 'tests') return Boolean(this.session.who?.control)
    return name !== 'hosts' || !this.cloud.ruleAgainst('GET /os-hypervisors/detail')
  }

  // The address is #/VIEW or #/VIEW/ID, with parameters.
  show() {
    this.begin()
    const [path, query] = location.hash.slice(1).split('?')
    const [, name, id] = path.split('/')
    // After logging in, the user may be allowed to see the view.
    const unsure = name === 'tests' && !this.session.who
    const view = id !== undefined && name === 'servers' ? 'server' : Object.hasOwn(this.views, name) && this.session.offered && (unsure || this.isFor(name)) ? name : 'api'
    fill(this.nav, this.session.offered && this.links.filter(([each]) => this.isFor(each)).map(([each, text, href]) => (
      h('a', { href, 'aria-current': each === name || (each === 'api' && view === 'api') ? 'page' : null }, text))))
    this.nav.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    const closed = view !== 'api' && !this.session.who
    const shown = this.views[view]
    for (const each of Object.values(this.views)) if (each !== shown || closed) each.hide()
    if (!closed) shown.show(id === undefined ? null : decoded(id), new URLSearchParams(query))
    if (view !== 'api' && view !== 'server') document.title = `${this.links.find(([each]) => each === view)[1]} – computeapi`
    const element = closed ? this.door : shown.element
    if (main.firstElementChild !== element) fill(main, element)
  }
}

// Text that cannot be decoded is unchanged.
function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

async function load() {
  const session = new Session()
  const { element, open } = corner(session)
  const [api, requirements] = await Promise.all([
    APIView.load(session, () => open()), fetch('requirements.json').then((answer) => answer.json()), session.load()])
  const page = new Page(session, open, api, requirements)
  bar.append(page.nav, element)
  session.addEventListener('change', () => page.show())
  addEventListener('hashchange', () => page.show())
  addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, select, textarea')) return
    event.preventDefault()
    main.querySelector('input[type="search"]')?.focus()
  })
  page.show()
}

try {
  await load()
} catch (error) {
  fill(main, h('p', { class: 'waiting', role: 'alert' }, error.message))
  throw error
} finally {
  main.removeAttribute('aria-busy')
}
