require 'json'
require 'minitest/autorun'
require 'net/http'
require_relative 'web'

class TestWeb < Minitest::Test
  CIRROS = { image: 'cirros-0.6.3-x86_64-disk', flavor: 'm1.tiny' }

  def setup
    control(Net::HTTP::Post, '/reset')
    @web = Web.new
  end

  def test_a_server_boots
    server = @web.boot('web', **CIRROS)
    assert_equal ['web'], server.addresses.keys
    assert_equal 'web', server.key_name
  end

  def test_it_retries_while_the_cloud_is_busy
    control(Net::HTTP::Post, '/faults', { operation: 'POST /servers', status: 503, count: 2 })
    @web.boot('web', **CIRROS)
    assert_equal 3, control(Net::HTTP::Get, '/journal?operation=POST+/servers')['count']
  end

  def test_a_server_that_fails_to_boot_is_an_error
    control(Net::HTTP::Post, '/faults', { hypervisor: 'spawn', effect: 'fail', server: 'web' })
    assert_raises(RuntimeError) { @web.boot('web', **CIRROS) }
  end

  # Calls the control API of the cloud; returns the response.
  def control(method, path, body = nil)
    uri = URI(ENV['COMPUTEAPI_CONTROL_URL'] + path)
    request = method.new(uri, 'X-Control-Token' => ENV['COMPUTEAPI_CONTROL_TOKEN'])
    request.content_type = 'application/json'
    request.body = JSON.generate(body) if body
    answer = Net::HTTP.start(uri.host, uri.port) { |http| http.request(request) }
    raise "#{path}: #{answer.body}" unless answer.is_a?(Net::HTTPSuccess)

    JSON.parse(answer.body) if answer.body
  end
end
