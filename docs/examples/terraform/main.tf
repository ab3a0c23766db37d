# A web server with its own network and key pair, in the cloud that OS_AUTH_URL, OS_USERNAME and so on name.

terraform {
  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = "~> 3.0"
    }
  }
}

variable "name" {
  type    = string
  default = "web"
}

resource "openstack_networking_network_v2" "web" {
  name = "web"
}

resource "openstack_networking_subnet_v2" "web" {
  name       = "web"
  network_id = openstack_networking_network_v2.web.id
  cidr       = "10.9.0.0/24"
}

resource "openstack_compute_keypair_v2" "web" {
  name = "web"
}

resource "openstack_compute_instance_v2" "web" {
  name        = var.name
  image_name  = "cirros-0.6.3-x86_64-disk"
  flavor_name = "m1.tiny"
  key_pair    = openstack_compute_keypair_v2.web.name

  network {
    uuid = openstack_networking_network_v2.web.id
  }

  depends_on = [openstack_networking_subnet_v2.web]
}

output "id" {
  value = openstack_compute_instance_v2.web.id
}
