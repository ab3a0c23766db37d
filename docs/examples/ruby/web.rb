# Boots a web server in an OpenStack cloud.
require 'fog/openstack'

class Web
  # With the credentials in OS_USERNAME, OS_PASSWORD and so on.
  def initialize
    login = {
      openstack_auth_url: ENV['OS_AUTH_URL'],
      openstack_username: ENV['OS_USERNAME'],
      openstack_api_key: ENV['OS_PASSWORD'],
      openstack_project_name: ENV['OS_PROJECT_NAME'],
      openstack_domain_name: ENV['OS_USER_DOMAIN_NAME'],
      openstack_region: ENV['OS_REGION_NAME']
    }
    @compute = Fog::OpenStack::Compute.new(login)
    @image = Fog::OpenStack::Image.new(login)
    @network = Fog::OpenStack::Network.new(login)
  end

  # Creates a server with its own network and key pair; returns it once it is ACTIVE.
  def boot(name, image:, flavor:)
    network = @network.networks.create(name: name)
    @network.subnets.create(name: name, network_id: network.id, cidr: '10.9.0.0/24', ip_version: 4)
    @compute.key_pairs.create(name: name)
    server = create(
      name: name,
      image_ref: @image.images.find { |each| each.name == image }.id,
      flavor_ref: @compute.flavors.find { |each| each.name == flavor }.id,
      key_name: name,
      nics: [{ net_id: network.id }]
    )
    server.wait_for(60, 0.1) { failed? || ready? }
    server.ready? ? server : raise("#{name} is in state #{server.state}.")
  end

  private

  # Tries up to three times while the cloud is busy.
  def create(**facts)
    tries = 0
    begin
      @compute.servers.create(**facts)
    rescue Excon::Error::ServiceUnavailable
      (tries += 1) < 3 ? retry : raise
    end
  end
end
